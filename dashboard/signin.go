package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

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

// doSignIn is POST /sign-in. What it says, and the time it takes, are the same whether there is such an account.
func (d *Dashboard) doSignIn(v *visit) {
	f := v.form()
	if f == nil {
		return
	}
	email, password := f.required("email"), f.required("password")
	if !f.ok() {
		v.again("signin", v.next(), f)
		return
	}
	if !v.mayTry("password", email) {
		f.notice("error.tries")
		v.show(http.StatusTooManyRequests, "signin", v.next(), f)
		return
	}
	user, err := d.rooms.Accounts.Login(v.ctx(), email, password)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		f.notice("signin.wrong")
		v.again("signin", v.next(), f)
	case err != nil:
		v.fail("signing in", err)
	default:
		v.openSession(user, v.next(), "")
	}
}

// openSession begins a session in place of what the browser had, and goes on to next, by way of the second factor when
// there is one.
func (v *visit) openSession(user accounts.User, next, flash string) {
	if v.session != nil { // of somebody, perhaps of somebody else
		if err := v.d.rooms.Accounts.EndSession(v.ctx(), v.session.User.ID, v.session.ID); err != nil && !errors.Is(err, accounts.ErrNotFound) {
			v.fail("ending a session", err)
			return
		}
	}
	token, passed, err := v.d.rooms.Accounts.OpenSession(v.ctx(), user,
		accounts.Browser{Address: v.c.ClientIP(), Device: v.c.Request.UserAgent()})
	if err != nil {
		v.fail("opening a session", err)
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
	if v.half() {
		v.render(http.StatusOK, "code", v.next())
	}
}

// half says whether the password was right and the second factor is to come; otherwise it has answered.
func (v *visit) half() bool {
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
	if f == nil || !v.half() {
		return
	}
	if !v.rightCode(f, "code", "code", v.next()) {
		return
	}
	token, err := d.rooms.Accounts.PassSession(v.ctx(), *v.session)
	if err != nil {
		v.fail("passing a session", err)
		return
	}
	v.setSession(token)
	v.redirect(v.next(), "")
}

// rightCode checks the second factor's code in a field; it is false when it has answered with the page again.
func (v *visit) rightCode(f *form, field, page string, data any) bool {
	code := f.required(field)
	if !f.ok() {
		v.again(page, data, f)
		return false
	}
	if !v.mayTry("code", strconv.FormatInt(v.session.User.ID, 10)) {
		f.notice("error.tries")
		v.show(http.StatusTooManyRequests, page, data, f)
		return false
	}
	err := v.d.rooms.Accounts.CheckSecondFactor(v.ctx(), v.session.User.ID, code)
	switch {
	case errors.Is(err, accounts.ErrWrongCode):
		f.values.Del(field)
		f.refuse(field, "code.wrong")
		v.again(page, data, f)
		return false
	case err != nil:
		v.fail("checking a code", err)
		return false
	}
	return true
}

// signOut is POST /sign-out.
func (d *Dashboard) signOut(v *visit) {
	if v.session != nil {
		if err := d.rooms.Accounts.EndSession(v.ctx(), v.session.User.ID, v.session.ID); err != nil && !errors.Is(err, accounts.ErrNotFound) {
			v.fail("signing out", err)
			return
		}
	}
	v.dropCookie(sessionCookie)
	v.redirect("/sign-in", "")
}
