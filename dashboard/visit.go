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

	"intumwa/accounts"
	"intumwa/dashboard/words"
	"intumwa/messages"
	"intumwa/webhooks"
)

// visit is one request: who asks, in which language, and how to answer.
type visit struct {
	d       *Dashboard
	c       *gin.Context
	lang    *words.Language
	token   string            // of the session; empty without one
	session *accounts.Session // nil: nobody has signed in
}

const visitKey = "visit"

// visit is the request's; the first call makes it.
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

// identify finds the session that the cookie names. It is false when it has answered the request itself.
func (v *visit) identify() bool {
	token, err := v.c.Cookie(v.cookieName(sessionCookie))
	if err != nil || token == "" || v.session != nil {
		return true
	}
	s, err := v.d.rooms.Accounts.SessionByToken(v.ctx(), token, v.d.opts.SessionIdle)
	switch {
	case err == nil:
		v.token, v.session = token, &s
	case errors.Is(err, accounts.ErrUnauthenticated):
		v.dropCookie(sessionCookie)
	case strings.HasPrefix(v.c.Request.URL.Path, "/assets/"): // needs nobody
	default:
		v.fail("reading a session", err)
		return false
	}
	return true
}

func (v *visit) inAdmin() bool {
	s := v.session
	return s != nil && s.User.Administrator && s.AdminUntil != nil && time.Now().Before(*s.AdminUntil)
}

// view is what every template gets.
type view struct {
	*words.Language
	Languages []*words.Language
	Path      string // of this page
	Route     string // of the request, as routes.go writes it
	Session   *accounts.Session
	Nav       []navItem // empty outside
	Flash     string    // what became of the last change
	Form      *form     // never nil
	Docs      string
	InAdmin   bool
	Data      any
}

// render answers with a page.
func (v *visit) render(status int, name string, data any) { v.show(status, name, data, newForm()) }

// again answers with the page of a form that was not filled in right.
func (v *visit) again(name string, data any, f *form) {
	v.show(http.StatusUnprocessableEntity, name, data, f)
}

func (v *visit) show(status int, name string, data any, f *form) {
	p := view{Language: v.lang, Languages: v.d.words.Languages, Path: v.c.Request.URL.Path, Route: v.c.FullPath(), Form: f, Docs: v.d.opts.DocsURL, Data: data}
	if v.c.Request.Method != http.MethodGet { // such an address may not open by itself
		p.Path = "/"
	}
	if v.session != nil && v.session.Passed {
		p.Session, p.InAdmin = v.session, v.inAdmin()
		p.Nav = v.nav()
	}
	p.Flash = v.takeFlash()
	var out bytes.Buffer
	if err := v.d.pages.execute(&out, name, &p); err != nil {
		v.d.log.Error("page could not be rendered", "page", name, "error", err)
		v.c.Data(http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(v.lang.T("error.500.title")))
		return
	}
	v.c.Header("Content-Language", v.lang.Tag)
	v.c.Header("Vary", "Accept-Language, Cookie")
	v.c.Data(status, "text/html; charset=utf-8", out.Bytes())
}

// redirect answers a change: the next page is fetched with GET, and says the flash, a key of a text.
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

// toSignIn sends to a page of signing in and notes where to come back.
func (v *visit) toSignIn(path string) {
	if v.c.Request.Method == http.MethodGet && v.c.Request.URL.Path != "/" {
		path += "?next=" + url.QueryEscape(v.c.Request.URL.RequestURI())
	}
	v.redirect(path, "")
}

// next is where to go after signing in: a path of this site, whatever the request says.
func (v *visit) next() string { return localPath(v.c.Query("next")) }

func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(u.Path, "//") || strings.ContainsAny(next, "\\\r\n\t") || len(next) > 1000 {
		return "/"
	}
	return u.RequestURI()
}

// id is a number in the path; 0, which nothing has, when it is none.
func (v *visit) id() int64 {
	id, err := strconv.ParseInt(v.c.Param("id"), 10, 64)
	if err != nil || id < 0 {
		return 0
	}
	return id
}

// oops answers with a page that says what is wrong.
func (v *visit) oops(status int) {
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

// fail answers for what a person can do nothing about. A thing that is not there, or another's, is 404.
func (v *visit) fail(doing string, err error) {
	switch {
	case errors.Is(err, accounts.ErrNotFound), errors.Is(err, messages.ErrNotFound), errors.Is(err, webhooks.ErrNotFound):
		v.oops(http.StatusNotFound)
	case v.c.Request.Context().Err() != nil && !errors.Is(v.c.Request.Context().Err(), context.DeadlineExceeded): // nobody waits for it
		v.c.AbortWithStatus(499)
	default:
		v.d.log.Error("request failed: "+doing, "path", v.c.FullPath(), "error", err)
		v.c.Header("Retry-After", "5")
		v.oops(http.StatusServiceUnavailable)
	}
}
