package signin

import (
	"context"
	"errors"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// Forgotten is GET /password.
func (ps *Pages) Forgotten(v *web.Visit) error { return v.Render("forgotten", nil) }

// RequestReset is POST /password: it mails a link. The response does not reveal whether the account exists.
func (ps *Pages) RequestReset(v *web.Visit) error {
	f := v.Form()
	email := ps.Mailed(f, "email")
	if !f.OK() {
		return ps.Forgotten(v)
	}
	token, err := ps.Deps.SignIn.BeginReset(v.Ctx(), email, v.Lang.Tag)
	switch {
	case err == nil:
		ps.Mails.reset(v.Lang, email, token)
	case !errors.Is(err, accounts.ErrNotFound):
		return err
	}
	return mailedTo(v, email)
}

// Reset is GET /password/:token. It changes nothing, because mail scanners follow links too.
func (ps *Pages) Reset(v *web.Visit) error {
	return choose(v, ps.Deps.SignIn.ResetLink, v.Lang.T("reset.title"), "", "reset.button")
}

// DoReset is POST /password/:token.
func (ps *Pages) DoReset(v *web.Visit) error {
	return ps.chosen(v, ps.Reset, ps.Deps.SignIn.ResetLink, ps.Deps.SignIn.FinishReset, "flash.reset")
}

// choice is the page of a mailed link, for choosing a password.
type choice struct {
	Email, Title, Text, Button string
	Least                      int
}

// choose renders the page of the mailed link in the path, with a title, a text that may be empty, and the key of its
// button's text.
func choose(v *web.Visit, find func(context.Context, string) (people.Link, error), title, text, button string) error {
	link, err := find(v.Ctx(), v.C.Param("token"))
	if err != nil {
		return linkGone(err)
	}
	return v.Render("choose", choice{link.Email, title, text, v.Lang.T(button), people.MinPassword})
}

// chosen ends a mailed link with the password from the page, and signs in.
func (ps *Pages) chosen(v *web.Visit, page func(*web.Visit) error,
	find func(context.Context, string) (people.Link, error),
	finish func(ctx context.Context, token, password string) (people.User, error), flash string) error {
	f := v.Form()
	if _, err := find(v.Ctx(), v.C.Param("token")); err != nil { // before the password is hashed
		return linkGone(err)
	}
	password := newPassword(f, "password")
	if !f.OK() {
		return page(v)
	}
	v.Leave() // hashing may have to wait
	user, err := finish(v.Ctx(), v.C.Param("token"), password)
	if err != nil {
		return linkGone(err)
	}
	return ps.openSession(v, user, "/", flash)
}

// linkGone returns the error of a mailed link.
func linkGone(err error) error {
	if errors.Is(err, accounts.ErrNotFound) || errors.Is(err, accounts.ErrExists) {
		return web.ErrLinkGone
	}
	return err
}

// newPassword returns a field with a new password.
func newPassword(f *web.Form, field string) string {
	password := f.Required(field)
	if n := len([]rune(password)); n < people.MinPassword || len(password) > 1024 {
		f.Refuse(field, "finish.short", people.MinPassword)
	}
	return password
}

// ChangePassword is POST /account/password.
func (ps *Pages) ChangePassword(v *web.Visit, s *people.Session) error {
	f := v.Form()
	present, password := f.Required("present"), newPassword(f, "new")
	ps.allow(f, tryPresent, s.User.Email)
	if !f.OK() {
		return ps.Account(v, s)
	}
	v.Leave() // hashing may have to wait
	err := wrongPassword(f, "present", ps.Deps.SignIn.ChangePassword(v.Ctx(), *s, present, password))
	if err == nil && !f.OK() {
		return ps.Account(v, s)
	}
	if err == nil {
		err = ps.setDevice(v, s.User.Email) // the new password invalidates known browsers
	}
	return v.Done(err, "/account", "flash.password")
}
