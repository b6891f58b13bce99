package signin

import (
	"errors"
	"net/url"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// SignIn is GET /sign-in.
func (ps *Pages) SignIn(v *web.Visit) error {
	if v.Session != nil && v.Session.Passed {
		return v.Redirect(v.Next(), "")
	}
	return v.Render("signin", v.Next())
}

// DoSignIn is POST /sign-in. Neither its response nor its duration reveals whether the account exists.
func (ps *Pages) DoSignIn(v *web.Visit) error {
	f := v.Form()
	email, password := f.Required("email"), f.Required("password")
	ps.allow(f, tryPassword, email)
	if !f.OK() {
		return v.Render("signin", v.Next())
	}
	v.Leave() // hashing may have to wait
	user, err := ps.Deps.SignIn.Login(v.Ctx(), email, password)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		f.Fail("signin.wrong")
		return v.Render("signin", v.Next())
	case err != nil:
		v.TriedWell()
		return err
	}
	v.TriedWell()
	return ps.openSession(v, user, v.Next(), "")
}

// openSession replaces the browser's session by a new one and redirects to next, or first to the page for the second
// factor if the user has one.
func (ps *Pages) openSession(v *web.Visit, user people.User, next, flash string) error {
	if err := ps.dropSession(v); err != nil { // it may belong to another user
		return err
	}
	token, passed, err := ps.Deps.Sessions.OpenSession(v.Ctx(), user,
		people.Browser{Address: v.C.ClientIP(), Device: v.C.Request.UserAgent()})
	if err != nil {
		return err
	}
	v.SetSession(token)
	if !passed {
		return v.Redirect("/sign-in/code?next="+url.QueryEscape(next), "")
	}
	return v.Done(ps.setDevice(v, user.Email), next, flash)
}

// dropSession ends the session, if any.
func (ps *Pages) dropSession(v *web.Visit) error {
	if v.Session == nil {
		return nil
	}
	err := ps.Deps.Sessions.EndSession(v.Ctx(), v.Session.User.ID, v.Session.ID)
	if errors.Is(err, accounts.ErrNotFound) {
		return nil
	}
	return err
}

// Code is GET /sign-in/code: the second factor.
func (ps *Pages) Code(v *web.Visit) error {
	switch {
	case v.Session == nil:
		return v.Redirect("/sign-in", "")
	case v.Session.Passed:
		return v.Redirect(v.Next(), "")
	}
	return v.Render("code", v.Next())
}

// DoCode is POST /sign-in/code.
func (ps *Pages) DoCode(v *web.Visit) error {
	if v.Session == nil || v.Session.Passed {
		return ps.Code(v)
	}
	f := v.Form()
	if err := ps.secondFactor(f, "code"); err != nil {
		return err
	}
	if !f.OK() {
		return ps.Code(v)
	}
	token, err := ps.Deps.Sessions.PassSession(v.Ctx(), *v.Session)
	if err != nil {
		return err
	}
	v.SetSession(token)
	return v.Done(ps.setDevice(v, v.Session.User.Email), v.Next(), "")
}

// secondFactor checks the second factor's code in a field.
func (ps *Pages) secondFactor(f *web.Form, field string) error {
	v := f.Visit
	code := f.Required(field)
	ps.allow(f, tryCode, v.Session.User.Email)
	if !f.OK() {
		return nil
	}
	return wrongCode(f, field, ps.Deps.SignIn.CheckSecondFactor(v.Ctx(), v.Session.User.ID, code))
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

// SignOut is POST /sign-out.
func (ps *Pages) SignOut(v *web.Visit) error {
	if err := ps.dropSession(v); err != nil {
		return err
	}
	v.DropCookie(web.SessionCookie)
	return v.Redirect("/sign-in", "")
}
