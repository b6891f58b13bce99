package dashboard

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/dashboard/words"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/webhooks"
)

// visit is one request: its user, its language, and the methods for responding.
type visit struct {
	d       *Dashboard
	c       *gin.Context
	lang    *words.Language
	token   string            // of the session; empty without one
	session *accounts.Session // nil: not signed in

	leaveTurn func() // ends the turn at the database; nil: the request has none
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

// loadSession reads the cookie's session. On an error it writes the response and returns false.
func (v *visit) loadSession() bool {
	token, err := v.c.Cookie(v.cookieName(sessionCookie))
	if err != nil || token == "" || v.session != nil {
		return true
	}
	if !v.takeTurn() { // of the address: anybody can invent a cookie
		return false
	}
	defer v.leave()
	s, err := v.d.rooms.Accounts.SessionByToken(v.ctx(), token, v.d.opts.SessionIdle)
	switch {
	case err == nil:
		v.token, v.session = token, &s
	case errors.Is(err, accounts.ErrUnauthenticated):
		v.dropCookie(sessionCookie)
	default:
		v.handleError("reading a session", err)
		return false
	}
	return true
}

func (v *visit) adminOpen() bool {
	s := v.session
	return s != nil && s.User.Administrator && s.AdminUntil != nil && postgres.Now().Before(*s.AdminUntil)
}

// view is the data of every template.
type view struct {
	*words.Language
	Languages []*words.Language
	Path      string // of this page
	Route     string // of the request, as routes.go writes it
	Session   *accounts.Session
	Nav       []navItem // empty outside
	Flash     string    // result of the last change
	Form      *form     // never nil
	Docs      string
	InAdmin   bool
	Data      any
}

// render responds with a page.
func (v *visit) render(status int, name string, data any) {
	v.renderPage(status, name, data, v.newForm())
}

// renderForm responds with the page of a form that has errors.
func (v *visit) renderForm(name string, data any, f *form) {
	v.renderPage(http.StatusUnprocessableEntity, name, data, f)
}

func (v *visit) renderPage(status int, name string, data any, f *form) {
	p := view{Language: v.lang, Languages: v.d.words.Languages, Path: v.c.Request.URL.Path, Route: v.c.FullPath(), Form: f, Docs: v.d.opts.DocsURL, Data: data}
	if v.c.Request.Method != http.MethodGet { // the address may not have a page for GET
		p.Path = "/"
	}
	if v.session != nil && v.session.Passed {
		p.Session, p.InAdmin = v.session, v.adminOpen()
		p.Nav = v.nav()
	}
	p.Flash = v.takeFlash()
	var out bytes.Buffer
	if err := v.d.pages.execute(&out, name, &p); err != nil {
		v.d.log.Error("page could not be rendered", "page", name, "error", err)
		v.c.Data(http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(v.lang.T("error.500.title")))
		return
	}
	v.leave() // the client may read slowly
	v.c.Header("Content-Language", v.lang.Tag)
	v.c.Header("Vary", "Accept-Language, Cookie")
	v.c.Data(status, "text/html; charset=utf-8", out.Bytes())
}

// redirect responds to a change: the browser fetches the next page with GET, which shows the text with the key flash.
func (v *visit) redirect(path, flash string) {
	if flash != "" {
		v.setCookie(flashCookie, flash, time.Minute)
	}
	v.c.Redirect(http.StatusSeeOther, path)
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

// redirectToSignIn redirects to a sign-in page, with the address to return to.
func (v *visit) redirectToSignIn(path string) {
	if v.c.Request.Method == http.MethodGet && v.c.Request.URL.Path != "/" {
		path += "?next=" + url.QueryEscape(v.c.Request.URL.RequestURI())
	}
	v.redirect(path, "")
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

// id returns the id in the path; 0, which no row has, when it is not a number.
func (v *visit) id() int64 {
	id, err := strconv.ParseInt(v.c.Param("id"), 10, 64)
	if err != nil || id < 0 {
		return 0
	}
	return id
}

// renderError responds with the error page of a status.
func (v *visit) renderError(status int) {
	texts := map[int][2]string{
		http.StatusForbidden:             {"error.403.title", "error.403.text"},
		http.StatusNotFound:              {"error.404.title", "error.404.text"},
		http.StatusMethodNotAllowed:      {"error.405.title", "error.405.text"},
		http.StatusRequestEntityTooLarge: {"error.413.title", "error.413.text"},
		http.StatusTooManyRequests:       {"error.429.title", "error.429.text"},
		http.StatusInternalServerError:   {"error.500.title", "error.500.text"},
		http.StatusServiceUnavailable:    {"error.503.title", "error.503.text"},
	}
	text := texts[status]
	v.render(status, "error", struct{ Title, Text string }{v.lang.T(text[0]), v.lang.T(text[1])})
}

// renderWrong responds with the error page of other texts than the status has.
func (v *visit) renderWrong(status int, title, text string) {
	v.render(status, "error", struct{ Title, Text string }{v.lang.T(title), v.lang.T(text)})
}

// handleError responds to an error that the user cannot correct: 404 if a row does not exist or belongs to another company.
func (v *visit) handleError(doing string, err error) {
	switch {
	case errors.Is(err, accounts.ErrNotFound), errors.Is(err, messages.ErrNotFound), errors.Is(err, webhooks.ErrNotFound):
		v.renderError(http.StatusNotFound)
	case v.c.Request.Context().Err() != nil && !errors.Is(v.c.Request.Context().Err(), context.DeadlineExceeded): // the client has disconnected
		v.c.AbortWithStatus(499)
	default:
		// One line a second: during an outage every request fails in the same way.
		if now := time.Now().Unix(); v.d.failureLogged.Swap(now) != now {
			v.d.log.Error("request failed: "+doing, "path", v.c.FullPath(), "error", err)
		}
		v.c.Header("Retry-After", "5")
		v.renderError(http.StatusServiceUnavailable)
	}
}

// keepOnce stores a secret for the next page of this session, which shows it once.
func (v *visit) keepOnce(kind, text string) error {
	return v.d.rooms.Accounts.KeepOnce(v.ctx(), v.token, kind+"\n"+text)
}

// keepOnceIn is keepOnce in the transaction that creates the secret, so that a secret is never created without being shown.
func (v *visit) keepOnceIn(tx pgx.Tx, kind, text string) error {
	return v.d.rooms.Accounts.In(tx).KeepOnce(v.ctx(), v.token, kind+"\n"+text)
}

// takeOnce returns and deletes the stored secret; empty when there is none of that kind.
func (v *visit) takeOnce(kind string) (string, error) {
	if v.headOnly() {
		return "", nil
	}
	kept, err := v.d.rooms.Accounts.TakeOnce(v.ctx(), v.token)
	if err != nil {
		return "", err
	}
	is, text, _ := strings.Cut(kept, "\n")
	if is != kind {
		return "", nil
	}
	return text, nil
}
