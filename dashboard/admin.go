package dashboard

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"intumwa/accounts"
)

// adminLasts is how long the administrators' scope stays open.
const adminLasts = time.Hour

type enterPage struct {
	TOTP  bool // proof is a code, not the password
	SetUp bool // and there is no second factor yet
}

// enterAdmin is GET /admin/enter: it asks once more who comes.
func (d *Dashboard) enterAdmin(v *visit, s *accounts.Session) {
	data, ok := v.enterPage(s)
	if !ok {
		return
	}
	if v.inAdmin() {
		v.redirect("/admin", "")
		return
	}
	v.render(http.StatusOK, "adminenter", data)
}

func (v *visit) enterPage(s *accounts.Session) (data enterPage, ok bool) {
	if !s.User.Administrator {
		v.oops(http.StatusNotFound)
		return data, false
	}
	state, err := v.d.rooms.Accounts.SecondFactorOf(v.ctx(), s.User.ID)
	if err != nil {
		v.fail("reading the second factor", err)
		return data, false
	}
	data.TOTP = v.d.opts.AdminTOTP || state.On
	data.SetUp = data.TOTP && !state.On
	return data, true
}

// doEnterAdmin is POST /admin/enter.
func (d *Dashboard) doEnterAdmin(v *visit, s *accounts.Session) {
	f := v.form()
	if f == nil {
		return
	}
	data, ok := v.enterPage(s)
	if !ok {
		return
	}
	if data.SetUp {
		v.render(http.StatusForbidden, "adminenter", data)
		return
	}
	if data.TOTP {
		ok = v.rightCode(f, "proof", "adminenter", data)
	} else {
		ok = v.rightPassword(f, "proof", "adminenter", data)
	}
	if !ok {
		return
	}
	token, err := d.rooms.Accounts.EnterAdmin(v.ctx(), *s, adminLasts)
	if err != nil {
		v.fail("entering the administration", err)
		return
	}
	v.setSession(token)
	v.redirect("/admin", "")
}

// rightPassword checks the password in a field; it is false when it has answered with the page again.
func (v *visit) rightPassword(f *form, field, page string, data any) bool {
	password := f.required(field)
	if !f.ok() {
		v.again(page, data, f)
		return false
	}
	if !v.mayTry("password change", strconv.FormatInt(v.session.User.ID, 10)) {
		f.notice("error.tries")
		v.show(http.StatusTooManyRequests, page, data, f)
		return false
	}
	_, err := v.d.rooms.Accounts.Login(v.ctx(), v.session.User.Email, password)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		f.refuse(field, "account.present.wrong")
		v.again(page, data, f)
		return false
	case err != nil:
		v.fail("checking a password", err)
		return false
	}
	return true
}

// leaveAdmin is POST /admin/leave.
func (d *Dashboard) leaveAdmin(v *visit, s *accounts.Session) {
	if err := d.rooms.Accounts.LeaveAdmin(v.ctx(), *s); err != nil {
		v.fail("leaving the administration", err)
		return
	}
	v.redirect("/", "flash.left")
}
