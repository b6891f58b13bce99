package dashboard

import (
	"net/http"

	"intumwa/accounts"
)

type accountPage struct {
	TwoStep  accounts.SecondFactor
	Sessions []sessionRow
	Least    int
}

type sessionRow struct {
	accounts.Session
	Name string // of the device
	This bool
}

// account is GET /account.
func (d *Dashboard) account(v *visit, s *accounts.Session) {
	v.showAccount(http.StatusOK, s, newForm())
}

func (v *visit) showAccount(status int, s *accounts.Session, f *form) {
	a := v.d.rooms.Accounts
	data := accountPage{Least: accounts.MinPassword}
	var err error
	if data.TwoStep, err = a.SecondFactorOf(v.ctx(), s.User.ID); err != nil {
		v.fail("reading an account", err)
		return
	}
	sessions, err := a.Sessions(v.ctx(), s.User.ID, v.d.opts.SessionIdle)
	if err != nil {
		v.fail("reading an account", err)
		return
	}
	for _, other := range sessions {
		name := deviceName(other.Device)
		if name == "" {
			name = v.lang.T("account.unknown")
		}
		data.Sessions = append(data.Sessions, sessionRow{other, name, other.ID == s.ID})
	}
	v.show(status, "account", data, f)
}

// endSession is POST /account/sessions/:id/end.
func (d *Dashboard) endSession(v *visit, s *accounts.Session) {
	if err := d.rooms.Accounts.EndSession(v.ctx(), s.User.ID, v.id()); err != nil {
		v.fail("ending a session", err)
		return
	}
	v.redirect("/account", "flash.session")
}

// signOutEverywhere is POST /account/sign-out.
func (d *Dashboard) signOutEverywhere(v *visit, s *accounts.Session) {
	if err := d.rooms.Accounts.EndSessions(v.ctx(), s.User.ID, 0); err != nil {
		v.fail("ending sessions", err)
		return
	}
	v.dropCookie(sessionCookie)
	v.redirect("/sign-in", "")
}
