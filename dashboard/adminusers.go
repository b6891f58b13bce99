package dashboard

import (
	"cmp"
	"errors"

	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// administrators is GET /admin/users.
func (d *Dashboard) administrators(v *web.Visit) error {
	all, err := d.rooms.People.Administrators(v.Ctx())
	return v.Page(err, "adminusers", all)
}

// setUser is POST /admin/users/:id/disable, enable, demote and reset.
func (d *Dashboard) setUser(change string) func(*web.Visit) error {
	return func(v *web.Visit) error {
		f := v.Form()
		reason := reason(f)
		if !f.OK() {
			return d.administrators(v)
		}
		if u, err := d.rooms.People.UserByID(v.Ctx(), v.ID()); err != nil || !u.Administrator {
			return cmp.Or(err, web.ErrNotFound)
		}
		_, err := d.by(v).SetUser(v.Ctx(), v.ID(), change, reason)
		if errors.Is(err, people.ErrLastAdministrator) {
			f.Fail("users.last")
			return d.administrators(v)
		}
		return v.Done(err, "/admin/users", "flash.user."+change)
	}
}
