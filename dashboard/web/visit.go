package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/internal/postgres"
	"intumwa/texts"
)

// Visit is one request: its user, its language, and the methods for responding.
type Visit struct {
	site    *Site
	C       *gin.Context
	Lang    *texts.Language
	token   string          // of the session; empty without one
	Session *people.Session // nil: not signed in

	filled      *Form
	broke       bool     // an approved company has no credits
	tries       []func() // each uncounts a try
	administers bool     // an administration handler runs
	leaveTurn   func()   // ends the turn at the database; nil: none
}

const visitKey = "visit"

// visit returns the request's visit; the first call makes it.
func (s *Site) visit(c *gin.Context) *Visit {
	if v, ok := c.Get(visitKey); ok {
		return v.(*Visit)
	}
	v := &Visit{site: s, C: c}
	v.Lang = s.opts.Words.Match(c.GetHeader("Accept-Language"))
	if tag, err := c.Cookie(v.CookieName(LanguageCookie)); err == nil {
		if chosen, ok := s.opts.Words.ByTag(tag); ok {
			v.Lang = chosen
		}
	}
	c.Set(visitKey, v)
	return v
}

// Ctx returns the request's context.
func (v *Visit) Ctx() context.Context { return v.C.Request.Context() }

// loadSession reads the cookie's session.
func loadSession(v *Visit) error {
	token, err := v.C.Cookie(v.CookieName(SessionCookie))
	if err != nil || token == "" || v.Session != nil {
		return nil
	}
	if err := v.TakeTurn(); err != nil { // of the address: anyone can invent a cookie
		return err
	}
	defer v.Leave()
	s, err := v.site.opts.Sessions.SessionByToken(v.Ctx(), token, v.site.opts.SessionIdle)
	switch {
	case err == nil:
		v.token, v.Session = token, &s
	case errors.Is(err, accounts.ErrUnauthenticated):
		v.DropCookie(SessionCookie)
	default:
		return err
	}
	return nil
}

// AdminOpen reports whether the administrator scope is open.
func (v *Visit) AdminOpen() bool {
	s := v.Session
	return s != nil && s.User.Administrator && s.AdminUntil != nil && postgres.Now().Before(*s.AdminUntil)
}

// View is the data of every template.
type View struct {
	*texts.Language
	Languages []*texts.Language
	Path      string // of this page
	Route     string // of the request, as routes.go writes it
	Session   *people.Session
	Nav       []NavGroup // empty outside
	Broke     bool       // the company has no credits
	Credits   string     // how customers get credits, from the operator
	Flash     string     // result of the last change
	Form      *Form      // never nil
	Docs      string
	InAdmin   bool
	SMPP      bool // customers can bind by SMPP
	Data      any

	Title, Main template.HTML // of the page, for the frame
}

// Render responds with a page: 200, or the status of the form's error.
func (v *Visit) Render(name string, data any) error {
	f := v.Form()
	p := View{Language: v.Lang, Languages: v.site.opts.Words.Languages, Path: v.C.Request.URL.Path, Route: v.C.FullPath(),
		Form: f, Docs: v.site.opts.DocsURL, SMPP: v.site.opts.SMPP, Data: data}
	if v.C.Request.Method != http.MethodGet { // the address may have no page for GET
		p.Path = "/"
	}
	if v.Session != nil && v.Session.Passed {
		p.Session, p.InAdmin = v.Session, v.AdminOpen()
		p.Nav, p.Broke, p.Credits = v.site.opts.Nav(v), v.broke, v.site.opts.CreditsNotice
	}
	p.Flash = takeFlash(v)
	var out bytes.Buffer
	if err := v.site.execute(&out, name, &p); err != nil {
		v.site.opts.Log.Error("page could not be rendered", "event", "page_not_rendered", "page", name, "error", err)
		v.C.Data(http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(v.Lang.T("error.500.title")))
		return nil
	}
	v.Leave() // the client may read slowly
	v.C.Header("Content-Language", v.Lang.Tag)
	v.C.Header("Vary", "Accept-Language, Cookie")
	v.C.Data(cmp.Or(f.Status, http.StatusOK), "text/html; charset=utf-8", out.Bytes())
	return nil
}

// May reports whether the user's role has a right: pages offer only what the user may do.
func (p *View) May(right accounts.Right) bool { return p.Session != nil && p.Session.May(right) }

// Page is [Visit.Render] after reading data, unless that failed.
func (v *Visit) Page(err error, name string, data any) error {
	if err != nil {
		return err
	}
	return v.Render(name, data)
}

// Done is [Visit.Redirect] after a change, unless that failed.
func (v *Visit) Done(err error, path, flash string) error {
	if err != nil {
		return err
	}
	return v.Redirect(path, flash)
}

// Redirect responds to a change: the browser fetches the next page with GET, and that page shows the text with the key
// flash.
func (v *Visit) Redirect(path, flash string) error {
	if flash != "" {
		v.SetCookie(flashCookie, flash, time.Minute)
	}
	v.C.Redirect(http.StatusSeeOther, path)
	return nil
}

func takeFlash(v *Visit) string {
	key, err := v.C.Cookie(v.CookieName(flashCookie))
	if err != nil || key == "" {
		return ""
	}
	v.DropCookie(flashCookie)
	if !strings.HasPrefix(key, "flash.") || !v.Lang.Has(key) { // not one of ours
		return ""
	}
	return v.Lang.T(key)
}

// RedirectToSignIn redirects to a page of signing in, which leads back here.
func (v *Visit) RedirectToSignIn(path string) error {
	if v.C.Request.Method == http.MethodGet && v.C.Request.URL.Path != "/" {
		path += "?next=" + url.QueryEscape(v.C.Request.URL.RequestURI())
	}
	return v.Redirect(path, "")
}

// Next returns the address to go to after signing in: always a path of this site.
func (v *Visit) Next() string { return LocalPath(v.C.Query("next")) }

// LocalPath returns an address that a visitor gave, if it is a path of this site, else /.
func LocalPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(u.Path, "//") || strings.ContainsAny(next, "\\\r\n\t") || len(next) > 1000 {
		return "/"
	}
	return u.RequestURI()
}

// ID returns the id in the path, or 0, which no row has, if it is not a number.
func (v *Visit) ID() int64 {
	id, err := strconv.ParseInt(v.C.Param("id"), 10, 64)
	if err != nil || id < 0 {
		return 0
	}
	return id
}

// ULID returns the ULID in the path, or the zero one, which no row has, if it is not one.
func (v *Visit) ULID(name string) ulid.ULID {
	id, _ := ulid.ParseStrict(v.C.Param(name))
	return id
}

// failure is an error with a page of its own.
type failure struct {
	status      int
	title, text string // keys
}

// Error implements error.
func (e failure) Error() string { return e.text }

var failures = map[int]failure{
	http.StatusForbidden:             {403, "error.403.title", "error.403.text"},
	http.StatusNotFound:              {404, "error.404.title", "error.404.text"},
	http.StatusMethodNotAllowed:      {405, "error.405.title", "error.405.text"},
	http.StatusRequestEntityTooLarge: {413, "error.413.title", "error.413.text"},
	http.StatusTooManyRequests:       {429, "error.429.title", "error.429.text"},
	http.StatusInternalServerError:   {500, "error.500.title", "error.500.text"},
	http.StatusServiceUnavailable:    {503, "error.503.title", "error.503.text"},
}

// Errors of handlers.
var (
	ErrNotFound  error = failures[http.StatusNotFound] // no such row, or another company's
	errForbidden error = failures[http.StatusForbidden]
	errTooLarge  error = failures[http.StatusRequestEntityTooLarge]
	errRole      error = failure{http.StatusForbidden, "error.role.title", "error.role.text"}
	ErrInvitee   error = failure{http.StatusForbidden, "invitation.other.title", "invitation.other.text"}
	ErrElsewhere error = failure{http.StatusConflict, "invitation.elsewhere.title", "invitation.elsewhere.text"}
	ErrLinkGone  error = failure{http.StatusNotFound, "link.gone.title", "link.gone.text"}
	ErrChanges   error = failure{http.StatusTooManyRequests, "error.changes.title", "error.changes.text"}
)

// fail responds to a handler's error: a failure by its page, a missing row by 404, any other by 503.
func (v *Visit) fail(err error) {
	why, explained := errors.AsType[failure](err)
	switch ctx := v.Ctx(); {
	case explained:
	case slices.ContainsFunc(v.site.opts.Missing, func(missing error) bool { return errors.Is(err, missing) }):
		why = failures[http.StatusNotFound]
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded): // the client has disconnected
		v.C.AbortWithStatus(499)
		return
	default:
		// One line a second: in an outage every request fails the same way.
		if now := time.Now().Unix(); v.site.failureLogged.Swap(now) != now {
			v.site.opts.Log.Error("request failed", "event", "request_failed", "method", v.C.Request.Method, "path",
				v.C.FullPath(), "error", err)
		}
		v.C.Header("Retry-After", "5")
		why = failures[http.StatusServiceUnavailable]
	}
	v.Form().Status = why.status
	_ = v.Render("error", struct{ Title, Text string }{v.Lang.T(why.title), v.Lang.T(why.text)}) // never fails
}

// KeepOnce stores a secret for the next page of this session, which shows it once.
func (v *Visit) KeepOnce(kind, text string) error {
	return v.site.opts.Sessions.KeepOnce(v.Ctx(), v.token, kind, text)
}

// KeepSecret is [Visit.KeepOnce] in a transaction.
func (v *Visit) KeepSecret(tx pgx.Tx, kind, text string) error {
	return v.site.opts.Sessions.In(tx).KeepOnce(v.Ctx(), v.token, kind, text)
}

// KeepFirst is [Visit.KeepSecret] unless one of that kind is already stored: then it is an error (accounts.ErrExists).
func (v *Visit) KeepFirst(tx pgx.Tx, kind, text string) error {
	return v.site.opts.Sessions.In(tx).KeepFirst(v.Ctx(), v.token, kind, text)
}

// TakeOnce returns and deletes the stored secret; empty if there is none of that kind.
func (v *Visit) TakeOnce(kind string) (string, error) {
	if v.HeadOnly() {
		return "", nil
	}
	return v.site.opts.Sessions.TakeOnce(v.Ctx(), v.token, kind)
}

// NavItem is a line of the side navigation.
type NavItem struct {
	Path, Text, Icon string
	Here             bool
}

// NavGroup is a part of the side navigation.
type NavGroup struct {
	Title string // empty: none
	Items []NavItem
}
