package dashboard

import (
	"errors"
	"net/http"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/people"
)

// adminLasts is how long the administrator scope stays open.
const adminLasts = time.Hour

type enterPage struct {
	TOTP  bool // a code is required, not the password
	SetUp bool // but the user has no second factor yet
}

// enterAdmin is GET /admin/enter: the password or a code is required again.
func (d *Dashboard) enterAdmin(v *visit, s *people.Session) error {
	data, err := v.enterPage(s)
	switch {
	case err != nil:
		return err
	case v.adminOpen():
		return v.redirect("/admin", "")
	}
	return v.render("adminenter", data)
}

func (v *visit) enterPage(s *people.Session) (data enterPage, err error) {
	if !s.User.Administrator {
		return data, errNotFound
	}
	state, err := v.d.rooms.SignIn.SecondFactorOf(v.ctx(), s.User.ID)
	data.TOTP = v.d.opts.AdminTOTP || state.On
	data.SetUp = data.TOTP && !state.On
	return data, err
}

// doEnterAdmin is POST /admin/enter.
func (d *Dashboard) doEnterAdmin(v *visit, s *people.Session) error {
	data, err := v.enterPage(s)
	if err != nil {
		return err
	}
	f := v.form()
	switch {
	case data.SetUp:
		f.status = http.StatusForbidden
		return v.render("adminenter", data)
	case data.TOTP:
		err = f.secondFactor("proof")
	default:
		err = f.presentPassword("proof")
	}
	if err != nil {
		return err
	}
	if !f.ok() {
		return v.render("adminenter", data)
	}
	token, err := d.rooms.Sessions.EnterAdmin(v.ctx(), *s, adminLasts)
	if err != nil {
		return err
	}
	v.setSession(token)
	return v.redirect("/admin", "")
}

// presentPassword checks a field against the user's password.
func (f *form) presentPassword(field string) error {
	v := f.v
	password := f.required(field)
	f.allow(tryPresent, v.session.User.Email)
	if !f.ok() {
		return nil
	}
	v.leave() // hashing may have to wait
	_, err := v.d.rooms.SignIn.Login(v.ctx(), v.session.User.Email, password)
	return f.wrongPassword(field, err)
}

// wrongPassword refuses a field with the present password if err means that it is wrong. It returns other
// errors.
func (f *form) wrongPassword(field string, err error) error {
	if errors.Is(err, accounts.ErrUnauthenticated) {
		f.refuse(field, "account.present.wrong")
		return nil
	}
	f.v.triedWell()
	return err
}

// leaveAdmin is POST /admin/leave.
func (d *Dashboard) leaveAdmin(v *visit, s *people.Session) error {
	return v.done(d.rooms.Sessions.LeaveAdmin(v.ctx(), *s), "/", "flash.left")
}
