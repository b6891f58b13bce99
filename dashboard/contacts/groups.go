package contacts

import (
	"errors"
	"strconv"

	"intumwa/contacts"
	"intumwa/dashboard/web"
)

// Groups is GET /contacts/groups.
func (ps *Pages) Groups(v *web.Visit, t web.Tenant) error {
	list, err := web.List(v, "/contacts/groups", onPage, func(before int64, limit int) ([]contacts.Group, int64, error) {
		return ps.Deps.Contacts.GroupPage(v.Ctx(), t.Company.ID, before, limit)
	})
	return v.Page(err, "groups", list)
}

// CreateGroup is POST /contacts/groups.
func (ps *Pages) CreateGroup(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	_, err := ps.By(v).CreateGroup(v.Ctx(), t.Company.ID, f.Value("name"))
	if err = denied(f, err); err == nil && !f.OK() {
		return ps.Groups(v, t)
	}
	return v.Done(err, "/contacts/groups", "flash.group.made")
}

// RenameGroup is POST /contacts/groups/:id.
func (ps *Pages) RenameGroup(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	_, err := ps.By(v).RenameGroup(v.Ctx(), t.Company.ID, v.ID(), f.Value("name"))
	if err = denied(f, err); err == nil && !f.OK() {
		f.Values.Set("group", strconv.FormatInt(v.ID(), 10))
		return ps.Contacts(v, t)
	}
	return v.Done(err, membersPath(v.ID()), "flash.group.renamed")
}

// DeleteGroup is POST /contacts/groups/:id/delete. Its members stay contacts.
func (ps *Pages) DeleteGroup(v *web.Visit, t web.Tenant) error {
	_, err := ps.By(v).DeleteGroup(v.Ctx(), t.Company.ID, v.ID())
	if used, is := errors.AsType[*contacts.GroupUsed](err); is {
		f := v.Form()
		f.Values.Set("group", strconv.FormatInt(v.ID(), 10))
		f.Fail("group.used", used.Keyword, used.Address)
		return ps.Contacts(v, t)
	}
	return v.Done(err, "/contacts/groups", "flash.group.deleted")
}

// membersPath is the list of a group's members.
func membersPath(group int64) string {
	return web.Address("/contacts", "group", strconv.FormatInt(group, 10))
}
