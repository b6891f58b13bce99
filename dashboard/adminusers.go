package dashboard

import (
	"cmp"
	"errors"

	"intumwa/accounts/people"
)

// administrators is GET /admin/users.
func (d *Dashboard) administrators(v *visit) error {
	all, err := d.rooms.People.Administrators(v.ctx())
	return v.page(err, "adminusers", all)
}

// setUser is POST /admin/users/:id/disable, enable, demote and reset.
func (d *Dashboard) setUser(change string) func(*visit) error {
	return func(v *visit) error {
		f := v.form()
		reason := f.reason()
		if !f.ok() {
			return d.administrators(v)
		}
		if u, err := d.rooms.People.UserByID(v.ctx(), v.id()); err != nil || !u.Administrator {
			return cmp.Or(err, errNotFound)
		}
		_, err := v.by().SetUser(v.ctx(), v.id(), change, reason)
		if errors.Is(err, people.ErrLastAdministrator) {
			f.notice("users.last")
			return d.administrators(v)
		}
		return v.done(err, "/admin/users", "flash.user."+change)
	}
}
