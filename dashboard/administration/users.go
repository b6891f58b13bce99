package administration

import (
	"cmp"
	"errors"

	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// Administrators is GET /admin/users.
func (ps *Pages) Administrators(v *web.Visit) error {
	all, err := ps.Deps.People.Administrators(v.Ctx())
	return v.Page(err, "adminusers", all)
}

// SetUser is POST /admin/users/:id/disable, enable, demote and reset.
func (ps *Pages) SetUser(change string) func(*web.Visit) error {
	return func(v *web.Visit) error {
		f := v.Form()
		reason := reason(f)
		if !f.OK() {
			return ps.Administrators(v)
		}
		if u, err := ps.Deps.People.UserByID(v.Ctx(), v.ID()); err != nil || !u.Administrator {
			return cmp.Or(err, web.ErrNotFound)
		}
		_, err := ps.By(v).SetUser(v.Ctx(), v.ID(), change, reason)
		if errors.Is(err, people.ErrLastAdministrator) {
			f.Fail("users.last")
			return ps.Administrators(v)
		}
		return v.Done(err, "/admin/users", "flash.user."+change)
	}
}
