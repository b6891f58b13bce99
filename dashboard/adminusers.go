package dashboard

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/audit"
)

// administrators is GET /admin/users.
func (d *Dashboard) administrators(v *visit) error {
	all, err := d.rooms.Accounts.Administrators(v.ctx())
	return v.page(err, "adminusers", all)
}

// Names of changes of administrators in the audit log.
const (
	actUserDisable = "user.disable"
	actUserEnable  = "user.enable"
	actUserDemote  = "user.demote"
	actUserReset   = "user.reset"
)

type userAct struct {
	act, flash string
	change     accounts.UserChange
}

// userActs maps the last part of the path, /admin/users/:id/disable, to its act.
var userActs = map[string]userAct{
	"disable": {actUserDisable, "flash.user.disable", accounts.UserChange{Disabled: new(true)}},
	"enable":  {actUserEnable, "flash.user.enable", accounts.UserChange{Disabled: new(false)}},
	"demote":  {actUserDemote, "flash.user.demote", accounts.UserChange{Demote: true}},
	"reset":   {actUserReset, "flash.user.reset", accounts.UserChange{Reset: true}},
}

type recordedUser struct {
	Email         string `json:"email"`
	Administrator bool   `json:"administrator"`
	Disabled      bool   `json:"disabled"`
	Reason        string `json:"reason,omitempty"`
}

// setUser is POST /admin/users/:id/disable, enable, demote and reset.
func (d *Dashboard) setUser(to userAct) func(*visit) error {
	return func(v *visit) error {
		f, id := v.form(), v.id()
		reason := f.reason()
		if !f.ok() {
			return d.administrators(v)
		}
		err := v.change(func(tx pgx.Tx) (audit.Entry, error) {
			before, after, err := d.rooms.Accounts.In(tx).SetUser(v.ctx(), id, to.change)
			if err == nil && !before.Administrator {
				err = errNotFound
			}
			return audit.Entry{Act: to.act, Subject: fmt.Sprintf("user %d", id),
				Before: recordedUser{before.Email, before.Administrator, before.Disabled, ""},
				After:  recordedUser{after.Email, after.Administrator, after.Disabled, reason}}, err
		})
		if errors.Is(err, accounts.ErrLastAdministrator) {
			f.notice("users.last")
			return d.administrators(v)
		}
		return v.done(err, "/admin/users", to.flash)
	}
}
