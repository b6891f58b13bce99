package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/campaigns"
	"intumwa/exports"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/texts"
	"intumwa/verifications"
	"intumwa/webhooks"
)

// visit is one request: its user, its language, and the methods for responding.
type visit struct {
	d       *Dashboard
	c       *gin.Context
	lang    *texts.Language
	token   string          // of the session; empty without one
	session *people.Session // nil: not signed in

	filled      *form
	broke       bool     // an approved company has no credits
	tries       []func() // each uncounts a try
	administers bool     // an administration handler runs
	leaveTurn   func()   // ends the turn at the database; nil: none
}

const visitKey = "visit"

// visit returns the request's visit; the first call makes it.
func (d *Dashboard) visit(c *gin.Context) *visit {
	if v, ok := c.Get(visitKey); ok {
		return v.(*visit)
	}
	v := &visit{d: d, c: c}
	v.lang = d.words.Match(c.GetHeader("Accept-Language"))
	if tag, err := c.Cookie(v.cookieName(languageCookie)); err == nil {
		if chosen, ok := d.words.ByTag(tag); ok {
			v.lang = chosen
		}
	}
	c.Set(visitKey, v)
	return v
}

func (v *visit) ctx() context.Context { return v.c.Request.Context() }

// loadSession reads the cookie's session.
func (v *visit) loadSession() error {
	token, err := v.c.Cookie(v.cookieName(sessionCookie))
	if err != nil || token == "" || v.session != nil {
		return nil
	}
	if err := v.takeTurn(); err != nil { // of the address: anyone can invent a cookie
		return err
	}
	defer v.leave()
	s, err := v.d.rooms.Sessions.SessionByToken(v.ctx(), token, v.d.opts.SessionIdle)
	switch {
	case err == nil:
		v.token, v.session = token, &s
	case errors.Is(err, accounts.ErrUnauthenticated):
		v.dropCookie(sessionCookie)
	default:
		return err
	}
	return nil
}

func (v *visit) adminOpen() bool {
	s := v.session
	return s != nil && s.User.Administrator && s.AdminUntil != nil && postgres.Now().Before(*s.AdminUntil)
}

// view is the data of every template.
type view struct {
	*texts.Language
	Languages []*texts.Language
	Path      string // of this page
	Route     string // of the request, as routes.go writes it
	Session   *people.Session
	Nav       []navGroup // empty outside
	Broke     bool       // the company has no credits
	Credits   string     // how customers get credits, from the operator
	Flash     string     // result of the last change
	Form      *form      // never nil
	Docs      string
	InAdmin   bool
	SMPP      bool // see Options
	Data      any

	Title, Main template.HTML // of the page, for the frame
}

// render responds with a page: 200, or the status of the form's error.
func (v *visit) render(name string, data any) error {
	f := v.form()
	p := view{Language: v.lang, Languages: v.d.words.Languages, Path: v.c.Request.URL.Path, Route: v.c.FullPath(), Form: f, Docs: v.d.opts.DocsURL, SMPP: v.d.opts.SMPP, Data: data}
	if v.c.Request.Method != http.MethodGet { // the address may have no page for GET
		p.Path = "/"
	}
	if v.session != nil && v.session.Passed {
		p.Session, p.InAdmin = v.session, v.adminOpen()
		p.Nav, p.Broke, p.Credits = v.nav(), v.broke, v.d.opts.CreditsNotice
	}
	p.Flash = v.takeFlash()
	var out bytes.Buffer
	if err := execute(&out, name, &p); err != nil {
		v.d.log.Error("page could not be rendered", "event", "page_not_rendered", "page", name, "error", err)
		v.c.Data(http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(v.lang.T("error.500.title")))
		return nil
	}
	v.leave() // the client may read slowly
	v.c.Header("Content-Language", v.lang.Tag)
	v.c.Header("Vary", "Accept-Language, Cookie")
	v.c.Data(cmp.Or(f.status, http.StatusOK), "text/html; charset=utf-8", out.Bytes())
	return nil
}

// May reports whether the user's role has a right: pages offer only what the user may do.
func (p *view) May(right accounts.Right) bool { return p.Session != nil && p.Session.May(right) }

// page is [visit.render] after reading data, unless that failed.
func (v *visit) page(err error, name string, data any) error {
	if err != nil {
		return err
	}
	return v.render(name, data)
}

// done is [visit.redirect] after a change, unless that failed.
func (v *visit) done(err error, path, flash string) error {
	if err != nil {
		return err
	}
	return v.redirect(path, flash)
}

// redirect responds to a change: the browser fetches the next page with GET, and that page shows the text with the key
// flash.
func (v *visit) redirect(path, flash string) error {
	if flash != "" {
		v.setCookie(flashCookie, flash, time.Minute)
	}
	v.c.Redirect(http.StatusSeeOther, path)
	return nil
}

func (v *visit) takeFlash() string {
	key, err := v.c.Cookie(v.cookieName(flashCookie))
	if err != nil || key == "" {
		return ""
	}
	v.dropCookie(flashCookie)
	if !strings.HasPrefix(key, "flash.") || !v.lang.Has(key) { // not one of ours
		return ""
	}
	return v.lang.T(key)
}

func (v *visit) redirectToSignIn(path string) error {
	if v.c.Request.Method == http.MethodGet && v.c.Request.URL.Path != "/" {
		path += "?next=" + url.QueryEscape(v.c.Request.URL.RequestURI())
	}
	return v.redirect(path, "")
}

// next returns the address to go to after signing in: always a path of this site.
func (v *visit) next() string { return localPath(v.c.Query("next")) }

func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(u.Path, "//") || strings.ContainsAny(next, "\\\r\n\t") || len(next) > 1000 {
		return "/"
	}
	return u.RequestURI()
}

// id returns the id in the path, or 0, which no row has, if it is not a number.
func (v *visit) id() int64 {
	id, err := strconv.ParseInt(v.c.Param("id"), 10, 64)
	if err != nil || id < 0 {
		return 0
	}
	return id
}

// ulid returns the ULID in the path, or the zero one, which no row has, if it is not one.
func (v *visit) ulid(name string) ulid.ULID {
	id, _ := ulid.ParseStrict(v.c.Param(name))
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
	errNotFound  error = failures[http.StatusNotFound] // no such row, or another company's
	errForbidden error = failures[http.StatusForbidden]
	errTooLarge  error = failures[http.StatusRequestEntityTooLarge]
	errRole      error = failure{http.StatusForbidden, "error.role.title", "error.role.text"}
	errInvitee   error = failure{http.StatusForbidden, "invitation.other.title", "invitation.other.text"}
	errElsewhere error = failure{http.StatusConflict, "invitation.elsewhere.title", "invitation.elsewhere.text"}
	errLinkGone  error = failure{http.StatusNotFound, "link.gone.title", "link.gone.text"}
	errChanges   error = failure{http.StatusTooManyRequests, "error.changes.title", "error.changes.text"}
)

// fail responds to a handler's error: a failure by its page, a missing row by 404, any other by 503.
func (v *visit) fail(err error) {
	why, explained := errors.AsType[failure](err)
	switch ctx := v.ctx(); {
	case explained:
	case errors.Is(err, accounts.ErrNotFound), errors.Is(err, messages.ErrNotFound), errors.Is(err, webhooks.ErrNotFound), errors.Is(err, campaigns.ErrNotFound), errors.Is(err, exports.ErrNotFound), errors.Is(err, verifications.ErrNotFound):
		why = failures[http.StatusNotFound]
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded): // the client has disconnected
		v.c.AbortWithStatus(499)
		return
	default:
		// One line a second: in an outage every request fails the same way.
		if now := time.Now().Unix(); v.d.failureLogged.Swap(now) != now {
			v.d.log.Error("request failed", "event", "request_failed", "method", v.c.Request.Method, "path", v.c.FullPath(), "error", err)
		}
		v.c.Header("Retry-After", "5")
		why = failures[http.StatusServiceUnavailable]
	}
	v.form().status = why.status
	_ = v.render("error", struct{ Title, Text string }{v.lang.T(why.title), v.lang.T(why.text)}) // never fails
}

// keepOnce stores a secret for the next page of this session, which shows it once.
func (v *visit) keepOnce(kind, text string) error {
	return v.d.rooms.Sessions.KeepOnce(v.ctx(), v.token, kind, text)
}

// takeOnce returns and deletes the stored secret; empty if there is none of that kind.
func (v *visit) takeOnce(kind string) (string, error) {
	if v.headOnly() {
		return "", nil
	}
	return v.d.rooms.Sessions.TakeOnce(v.ctx(), v.token, kind)
}
