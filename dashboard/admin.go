package dashboard

import (
	"errors"
	"net/http"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// adminLasts is how long the administrator scope stays open.
const adminLasts = time.Hour

type enterPage struct {
	TOTP  bool // a code is required, not the password
	SetUp bool // but the user has no second factor yet
}

// enterAdmin is GET /admin/enter: the password or a code is required again.
func (d *Dashboard) enterAdmin(v *web.Visit, s *people.Session) error {
	data, err := d.enterPage(v, s)
	switch {
	case err != nil:
		return err
	case v.AdminOpen():
		return v.Redirect("/admin", "")
	}
	return v.Render("adminenter", data)
}

func (d *Dashboard) enterPage(v *web.Visit, s *people.Session) (data enterPage, err error) {
	if !s.User.Administrator {
		return data, web.ErrNotFound
	}
	state, err := d.rooms.SignIn.SecondFactorOf(v.Ctx(), s.User.ID)
	data.TOTP = d.opts.AdminTOTP || state.On
	data.SetUp = data.TOTP && !state.On
	return data, err
}

// doEnterAdmin is POST /admin/enter.
func (d *Dashboard) doEnterAdmin(v *web.Visit, s *people.Session) error {
	data, err := d.enterPage(v, s)
	if err != nil {
		return err
	}
	f := v.Form()
	switch {
	case data.SetUp:
		f.Status = http.StatusForbidden
		return v.Render("adminenter", data)
	case data.TOTP:
		err = d.secondFactor(f, "proof")
	default:
		err = d.presentPassword(f, "proof")
	}
	if err != nil {
		return err
	}
	if !f.OK() {
		return v.Render("adminenter", data)
	}
	token, err := d.rooms.Sessions.EnterAdmin(v.Ctx(), *s, adminLasts)
	if err != nil {
		return err
	}
	v.SetSession(token)
	return v.Redirect("/admin", "")
}

// presentPassword checks a field against the user's password.
func (d *Dashboard) presentPassword(f *web.Form, field string) error {
	v := f.Visit
	password := f.Required(field)
	d.allow(f, tryPresent, v.Session.User.Email)
	if !f.OK() {
		return nil
	}
	v.Leave() // hashing may have to wait
	_, err := d.rooms.SignIn.Login(v.Ctx(), v.Session.User.Email, password)
	return wrongPassword(f, field, err)
}

// wrongPassword refuses a field with the present password if err means that it is wrong. It returns other
// errors.
func wrongPassword(f *web.Form, field string, err error) error {
	if errors.Is(err, accounts.ErrUnauthenticated) {
		f.Refuse(field, "account.present.wrong")
		return nil
	}
	f.Visit.TriedWell()
	return err
}

// leaveAdmin is POST /admin/leave.
func (d *Dashboard) leaveAdmin(v *web.Visit, s *people.Session) error {
	return v.Done(d.rooms.Sessions.LeaveAdmin(v.Ctx(), *s), "/", "flash.left")
}
