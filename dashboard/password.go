package dashboard

import (
	"context"
	"errors"

	"intumwa/accounts"
	"intumwa/accounts/people"
)

// forgotten is GET /password.
func (d *Dashboard) forgotten(v *visit) error { return v.render("forgotten", nil) }

// requestReset is POST /password: it mails a link. The response does not reveal whether the account exists.
func (d *Dashboard) requestReset(v *visit) error {
	f := v.form()
	email := f.mailed("email")
	if !f.ok() {
		return d.forgotten(v)
	}
	token, err := d.rooms.SignIn.BeginReset(v.ctx(), email, v.lang.Tag)
	switch {
	case err == nil:
		d.mailReset(v.lang, email, token)
	case !errors.Is(err, accounts.ErrNotFound):
		return err
	}
	return v.mailedTo(email)
}

// reset is GET /password/:token. It changes nothing, because mail scanners follow links too.
func (d *Dashboard) reset(v *visit) error {
	return v.choose(d.rooms.SignIn.ResetLink, v.lang.T("reset.title"), "", "reset.button")
}

// doReset is POST /password/:token.
func (d *Dashboard) doReset(v *visit) error {
	return v.chosen(d.reset, d.rooms.SignIn.ResetLink, d.rooms.SignIn.FinishReset, "flash.reset")
}

// choice is the page of a mailed link, for choosing a password.
type choice struct {
	Email, Title, Text, Button string
	Least                      int
}

// choose renders the page of the mailed link in the path, with a title, a text that may be empty, and the key of its
// button's text.
func (v *visit) choose(find func(context.Context, string) (people.Link, error), title, text, button string) error {
	link, err := find(v.ctx(), v.c.Param("token"))
	if err != nil {
		return linkGone(err)
	}
	return v.render("choose", choice{link.Email, title, text, v.lang.T(button), people.MinPassword})
}

// chosen ends a mailed link with the password from the page, and signs in.
func (v *visit) chosen(page func(*visit) error, find func(context.Context, string) (people.Link, error),
	finish func(ctx context.Context, token, password string) (people.User, error), flash string) error {
	f := v.form()
	if _, err := find(v.ctx(), v.c.Param("token")); err != nil { // before the password is hashed
		return linkGone(err)
	}
	password := f.newPassword("password")
	if !f.ok() {
		return page(v)
	}
	v.leave() // hashing may have to wait
	user, err := finish(v.ctx(), v.c.Param("token"), password)
	if err != nil {
		return linkGone(err)
	}
	return v.openSession(user, "/", flash)
}

// linkGone returns the error of a mailed link.
func linkGone(err error) error {
	if errors.Is(err, accounts.ErrNotFound) || errors.Is(err, accounts.ErrExists) {
		return errLinkGone
	}
	return err
}

// newPassword returns a field with a new password.
func (f *form) newPassword(field string) string {
	password := f.required(field)
	if n := len([]rune(password)); n < people.MinPassword || len(password) > 1024 {
		f.refuse(field, "finish.short", people.MinPassword)
	}
	return password
}

// changePassword is POST /account/password.
func (d *Dashboard) changePassword(v *visit, s *people.Session) error {
	f := v.form()
	present, password := f.required("present"), f.newPassword("new")
	f.allow(tryPresent, s.User.Email)
	if !f.ok() {
		return d.account(v, s)
	}
	v.leave() // hashing may have to wait
	err := f.wrongPassword("present", d.rooms.SignIn.ChangePassword(v.ctx(), *s, present, password))
	if err == nil && !f.ok() {
		return d.account(v, s)
	}
	if err == nil {
		err = v.setDevice(s.User.Email) // the new password invalidates known browsers
	}
	return v.done(err, "/account", "flash.password")
}
