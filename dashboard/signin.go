package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"intumwa/accounts"
)

// signIn is GET /sign-in.
func (d *Dashboard) signIn(v *visit) {
	if v.session != nil && v.session.Passed {
		v.redirect(v.next(), "")
		return
	}
	v.render(http.StatusOK, "signin", v.next())
}

// doSignIn is POST /sign-in. Its response and duration do not show whether the account exists.
func (d *Dashboard) doSignIn(v *visit) {
	f := v.form()
	email, password := f.required("email"), f.required("password")
	if !f.ok() {
		v.renderForm("signin", v.next(), f)
		return
	}
	if !v.allowTry("password", email) {
		f.notice("error.tries")
		v.renderPage(http.StatusTooManyRequests, "signin", v.next(), f)
		return
	}
	v.leave() // hashing may have to wait
	user, err := d.rooms.Accounts.Login(v.ctx(), email, password)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		f.notice("signin.wrong")
		v.renderForm("signin", v.next(), f)
	case err != nil:
		v.handleError("signing in", err)
	default:
		v.openSession(user, v.next(), "")
	}
}

// openSession replaces the browser's session by a new one and redirects to next, or first to the page for the second
// factor if the user has one.
func (v *visit) openSession(user accounts.User, next, flash string) {
	if v.session != nil { // it may be another user's
		if err := v.d.rooms.Accounts.EndSession(v.ctx(), v.session.User.ID, v.session.ID); err != nil && !errors.Is(err, accounts.ErrNotFound) {
			v.handleError("ending a session", err)
			return
		}
	}
	token, passed, err := v.d.rooms.Accounts.OpenSession(v.ctx(), user,
		accounts.Browser{Address: v.c.ClientIP(), Device: v.c.Request.UserAgent()})
	if err != nil {
		v.handleError("opening a session", err)
		return
	}
	v.setSession(token)
	if !passed {
		v.redirect("/sign-in/code?next="+url.QueryEscape(next), "")
		return
	}
	v.redirect(next, flash)
}

// code is GET /sign-in/code: the second factor.
func (d *Dashboard) code(v *visit) {
	if v.awaitsCode() {
		v.render(http.StatusOK, "code", v.next())
	}
}

// awaitsCode reports whether the session waits for the second factor. When it does not, it writes the response.
func (v *visit) awaitsCode() bool {
	switch {
	case v.session == nil:
		v.redirect("/sign-in", "")
	case v.session.Passed:
		v.redirect(v.next(), "")
	default:
		return true
	}
	return false
}

// doCode is POST /sign-in/code.
func (d *Dashboard) doCode(v *visit) {
	f := v.form()
	if !v.awaitsCode() {
		return
	}
	if !v.checkCode(f, "code", "code", v.next()) {
		return
	}
	token, err := d.rooms.Accounts.PassSession(v.ctx(), *v.session)
	if err != nil {
		v.handleError("passing a session", err)
		return
	}
	v.setSession(token)
	v.redirect(v.next(), "")
}

// checkCode checks the second factor's code in a field. When it is wrong, it renders the page again and returns false.
func (v *visit) checkCode(f *form, field, page string, data any) bool {
	code := f.required(field)
	if !f.ok() {
		v.renderForm(page, data, f)
		return false
	}
	if !v.allowTry(tryCode, strconv.FormatInt(v.session.User.ID, 10)) {
		f.notice("error.tries")
		v.renderPage(http.StatusTooManyRequests, page, data, f)
		return false
	}
	err := v.d.rooms.Accounts.CheckSecondFactor(v.ctx(), v.session.User.ID, code)
	switch {
	case errors.Is(err, accounts.ErrWrongCode):
		f.values.Del(field)
		f.refuse(field, "code.wrong")
		v.renderForm(page, data, f)
		return false
	case err != nil:
		v.handleError("checking a code", err)
		return false
	}
	return true
}

// signOut is POST /sign-out.
func (d *Dashboard) signOut(v *visit) {
	if v.session != nil {
		if err := d.rooms.Accounts.EndSession(v.ctx(), v.session.User.ID, v.session.ID); err != nil && !errors.Is(err, accounts.ErrNotFound) {
			v.handleError("signing out", err)
			return
		}
	}
	v.dropCookie(sessionCookie)
	v.redirect("/sign-in", "")
}

// The cookies. Scripts cannot read them, and browsers send them with requests from other sites only when a link is followed.
const (
	sessionCookie  = "session"
	languageCookie = "language"
	flashCookie    = "flash"
)

// cookieName begins with __Host- if cookies are secure: then no other host, not even one of the same domain, can set it
// (RFC 6265bis, 4.1.3.2). Without HTTPS browsers refuse that name.
func (v *visit) cookieName(name string) string {
	if v.d.opts.SecureCookies {
		return "__Host-intumwa-" + name
	}
	return "intumwa-" + name
}

func (v *visit) setCookie(name, value string, lasts time.Duration) {
	http.SetCookie(v.c.Writer, &http.Cookie{ //nolint:gosec // Secure is as configured: a laptop has no HTTPS
		Name: v.cookieName(name), Value: value, Path: "/", MaxAge: int(lasts.Seconds()),
		Secure: v.d.opts.SecureCookies, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

func (v *visit) dropCookie(name string) { v.setCookie(name, "", -time.Second) }

// setSession sends the session's cookie. The browser deletes it when it is closed; the server may end the session before.
func (v *visit) setSession(token string) { v.setCookie(sessionCookie, token, 0) }
