package dashboard

import (
	"errors"
	"net/url"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// signIn is GET /sign-in.
func (d *Dashboard) signIn(v *web.Visit) error {
	if v.Session != nil && v.Session.Passed {
		return v.Redirect(v.Next(), "")
	}
	return v.Render("signin", v.Next())
}

// doSignIn is POST /sign-in. Neither its response nor its duration reveals whether the account exists.
func (d *Dashboard) doSignIn(v *web.Visit) error {
	f := v.Form()
	email, password := f.Required("email"), f.Required("password")
	d.allow(f, tryPassword, email)
	if !f.OK() {
		return v.Render("signin", v.Next())
	}
	v.Leave() // hashing may have to wait
	user, err := d.rooms.SignIn.Login(v.Ctx(), email, password)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		f.Fail("signin.wrong")
		return v.Render("signin", v.Next())
	case err != nil:
		v.TriedWell()
		return err
	}
	v.TriedWell()
	return d.openSession(v, user, v.Next(), "")
}

// openSession replaces the browser's session by a new one and redirects to next, or first to the page for the second
// factor if the user has one.
func (d *Dashboard) openSession(v *web.Visit, user people.User, next, flash string) error {
	if err := d.dropSession(v); err != nil { // it may belong to another user
		return err
	}
	token, passed, err := d.rooms.Sessions.OpenSession(v.Ctx(), user,
		people.Browser{Address: v.C.ClientIP(), Device: v.C.Request.UserAgent()})
	if err != nil {
		return err
	}
	v.SetSession(token)
	if !passed {
		return v.Redirect("/sign-in/code?next="+url.QueryEscape(next), "")
	}
	return v.Done(d.setDevice(v, user.Email), next, flash)
}

// dropSession ends the session, if any.
func (d *Dashboard) dropSession(v *web.Visit) error {
	if v.Session == nil {
		return nil
	}
	err := d.rooms.Sessions.EndSession(v.Ctx(), v.Session.User.ID, v.Session.ID)
	if errors.Is(err, accounts.ErrNotFound) {
		return nil
	}
	return err
}

// code is GET /sign-in/code: the second factor.
func (d *Dashboard) code(v *web.Visit) error {
	switch {
	case v.Session == nil:
		return v.Redirect("/sign-in", "")
	case v.Session.Passed:
		return v.Redirect(v.Next(), "")
	}
	return v.Render("code", v.Next())
}

// doCode is POST /sign-in/code.
func (d *Dashboard) doCode(v *web.Visit) error {
	if v.Session == nil || v.Session.Passed {
		return d.code(v)
	}
	f := v.Form()
	if err := d.secondFactor(f, "code"); err != nil {
		return err
	}
	if !f.OK() {
		return d.code(v)
	}
	token, err := d.rooms.Sessions.PassSession(v.Ctx(), *v.Session)
	if err != nil {
		return err
	}
	v.SetSession(token)
	return v.Done(d.setDevice(v, v.Session.User.Email), v.Next(), "")
}

// secondFactor checks the second factor's code in a field.
func (d *Dashboard) secondFactor(f *web.Form, field string) error {
	v := f.Visit
	code := f.Required(field)
	d.allow(f, tryCode, v.Session.User.Email)
	if !f.OK() {
		return nil
	}
	return wrongCode(f, field, d.rooms.SignIn.CheckSecondFactor(v.Ctx(), v.Session.User.ID, code))
}

// wrongCode refuses a field with the code of a second factor if err means that it is wrong. It returns other errors.
func wrongCode(f *web.Form, field string, err error) error {
	if errors.Is(err, people.ErrWrongCode) {
		f.Values.Del(field)
		f.Refuse(field, "code.wrong")
		return nil
	}
	f.Visit.TriedWell()
	return err
}

// signOut is POST /sign-out.
func (d *Dashboard) signOut(v *web.Visit) error {
	if err := d.dropSession(v); err != nil {
		return err
	}
	v.DropCookie(web.SessionCookie)
	return v.Redirect("/sign-in", "")
}
