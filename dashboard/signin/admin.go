package signin

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

// EnterAdmin is GET /admin/enter: the password or a code is required again.
func (ps *Pages) EnterAdmin(v *web.Visit, s *people.Session) error {
	data, err := ps.enterPage(v, s)
	switch {
	case err != nil:
		return err
	case v.AdminOpen():
		return v.Redirect("/admin", "")
	}
	return v.Render("adminenter", data)
}

func (ps *Pages) enterPage(v *web.Visit, s *people.Session) (data enterPage, err error) {
	if !s.User.Administrator {
		return data, web.ErrNotFound
	}
	state, err := ps.Deps.SignIn.SecondFactorOf(v.Ctx(), s.User.ID)
	data.TOTP = ps.AdminTOTP || state.On
	data.SetUp = data.TOTP && !state.On
	return data, err
}

// DoEnterAdmin is POST /admin/enter.
func (ps *Pages) DoEnterAdmin(v *web.Visit, s *people.Session) error {
	data, err := ps.enterPage(v, s)
	if err != nil {
		return err
	}
	f := v.Form()
	switch {
	case data.SetUp:
		f.Status = http.StatusForbidden
		return v.Render("adminenter", data)
	case data.TOTP:
		err = ps.secondFactor(f, "proof")
	default:
		err = ps.presentPassword(f, "proof")
	}
	if err != nil {
		return err
	}
	if !f.OK() {
		return v.Render("adminenter", data)
	}
	token, err := ps.Deps.Sessions.EnterAdmin(v.Ctx(), *s, adminLasts)
	if err != nil {
		return err
	}
	v.SetSession(token)
	return v.Redirect("/admin", "")
}

// presentPassword checks a field against the user's password.
func (ps *Pages) presentPassword(f *web.Form, field string) error {
	v := f.Visit
	password := f.Required(field)
	ps.allow(f, tryPresent, v.Session.User.Email)
	if !f.OK() {
		return nil
	}
	v.Leave() // hashing may have to wait
	_, err := ps.Deps.SignIn.Login(v.Ctx(), v.Session.User.Email, password)
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

// LeaveAdmin is POST /admin/leave.
func (ps *Pages) LeaveAdmin(v *web.Visit, s *people.Session) error {
	return v.Done(ps.Deps.Sessions.LeaveAdmin(v.Ctx(), *s), "/", "flash.left")
}
