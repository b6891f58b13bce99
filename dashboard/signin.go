package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/people"
)

// signIn is GET /sign-in.
func (d *Dashboard) signIn(v *visit) error {
	if v.session != nil && v.session.Passed {
		return v.redirect(v.next(), "")
	}
	return v.render("signin", v.next())
}

// doSignIn is POST /sign-in. Neither its response nor its duration reveals whether the account exists.
func (d *Dashboard) doSignIn(v *visit) error {
	f := v.form()
	email, password := f.required("email"), f.required("password")
	f.allow(tryPassword, email)
	if !f.ok() {
		return v.render("signin", v.next())
	}
	v.leave() // hashing may have to wait
	user, err := d.rooms.SignIn.Login(v.ctx(), email, password)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		f.notice("signin.wrong")
		return v.render("signin", v.next())
	case err != nil:
		v.triedWell()
		return err
	}
	v.triedWell()
	return v.openSession(user, v.next(), "")
}

// openSession replaces the browser's session by a new one and redirects to next, or first to the page for the second
// factor if the user has one.
func (v *visit) openSession(user people.User, next, flash string) error {
	if err := v.endSession(); err != nil { // it may belong to another user
		return err
	}
	token, passed, err := v.d.rooms.Sessions.OpenSession(v.ctx(), user,
		people.Browser{Address: v.c.ClientIP(), Device: v.c.Request.UserAgent()})
	if err != nil {
		return err
	}
	v.setSession(token)
	if !passed {
		return v.redirect("/sign-in/code?next="+url.QueryEscape(next), "")
	}
	return v.done(v.setDevice(user.Email), next, flash)
}

// endSession ends the session, if any.
func (v *visit) endSession() error {
	if v.session == nil {
		return nil
	}
	err := v.d.rooms.Sessions.EndSession(v.ctx(), v.session.User.ID, v.session.ID)
	if errors.Is(err, accounts.ErrNotFound) {
		return nil
	}
	return err
}

// code is GET /sign-in/code: the second factor.
func (d *Dashboard) code(v *visit) error {
	switch {
	case v.session == nil:
		return v.redirect("/sign-in", "")
	case v.session.Passed:
		return v.redirect(v.next(), "")
	}
	return v.render("code", v.next())
}

// doCode is POST /sign-in/code.
func (d *Dashboard) doCode(v *visit) error {
	if v.session == nil || v.session.Passed {
		return d.code(v)
	}
	f := v.form()
	if err := f.secondFactor("code"); err != nil {
		return err
	}
	if !f.ok() {
		return d.code(v)
	}
	token, err := d.rooms.Sessions.PassSession(v.ctx(), *v.session)
	if err != nil {
		return err
	}
	v.setSession(token)
	return v.done(v.setDevice(v.session.User.Email), v.next(), "")
}

// secondFactor checks the second factor's code in a field.
func (f *form) secondFactor(field string) error {
	v := f.v
	code := f.required(field)
	f.allow(tryCode, v.session.User.Email)
	if !f.ok() {
		return nil
	}
	return f.wrongCode(field, v.d.rooms.SignIn.CheckSecondFactor(v.ctx(), v.session.User.ID, code))
}

// wrongCode refuses a field with the code of a second factor if err means that it is wrong. It returns other errors.
func (f *form) wrongCode(field string, err error) error {
	if errors.Is(err, people.ErrWrongCode) {
		f.values.Del(field)
		f.refuse(field, "code.wrong")
		return nil
	}
	f.v.triedWell()
	return err
}

// signOut is POST /sign-out.
func (d *Dashboard) signOut(v *visit) error {
	if err := v.endSession(); err != nil {
		return err
	}
	v.dropCookie(sessionCookie)
	return v.redirect("/sign-in", "")
}

// The cookies. Scripts cannot read them. From other sites, browsers send them only when a link is followed.
const (
	sessionCookie  = "session"
	deviceCookie   = "device"
	languageCookie = "language"
	flashCookie    = "flash"
	sentCookie     = "sent" // the recipient of a mailed link
)

// cookieName begins with __Host- if cookies are secure: then no other host, not even one of the same domain, can set
// the cookie (RFC 6265bis, 4.1.3.2). Without HTTPS browsers refuse that name.
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

// setSession sends the session's cookie. The browser deletes it on closing; the server may end the session earlier.
func (v *visit) setSession(token string) { v.setCookie(sessionCookie, token, 0) }
