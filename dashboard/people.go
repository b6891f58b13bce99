package dashboard

import (
	"errors"
	"slices"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

type peoplePage struct {
	People      []people.User
	Invitations []people.Invitation
	Roles       []web.Option             // with their names
	Names       map[accounts.Role]string // the same
	Explained   map[string]string        // by role
}

// people is GET /people.
func (d *Dashboard) people(v *web.Visit, t web.Tenant) (err error) {
	data := peoplePage{Names: web.RoleNames(v.Lang), Explained: map[string]string{}}
	for _, role := range accounts.Roles {
		data.Roles = append(data.Roles, web.Option{Value: string(role), Text: data.Names[role]})
		data.Explained[string(role)] = v.Lang.T(web.RoleTexts[role].Text)
	}
	if data.People, err = d.rooms.People.PeopleOf(v.Ctx(), t.Company.ID); err != nil {
		return err
	}
	data.Invitations, err = d.rooms.People.InvitationsOf(v.Ctx(), t.Company.ID)
	return v.Page(err, "people", data)
}

// role returns the chosen role.
func role(f *web.Form) accounts.Role {
	role := accounts.Role(f.Value("role"))
	if !slices.Contains(accounts.Roles, role) {
		f.Refuse("role", "error.required")
	}
	return role
}

// invite is POST /people: it mails an invitation.
func (d *Dashboard) invite(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	name, role, email := f.Name("name"), role(f), d.mailed(f, "email")
	if !f.OK() {
		return d.people(v, t)
	}
	token, err := d.by(v).Invite(v.Ctx(), people.NewInvitation{Company: t.Company.ID, Email: email, Name: name, Role: role, Language: v.Lang.Tag})
	switch {
	case errors.Is(err, accounts.ErrInvalid):
		f.Refuse("email", "error.email")
	case errors.Is(err, accounts.ErrExists):
		f.Refuse("email", "people.already")
	case errors.Is(err, accounts.ErrTooMany):
		f.Fail("people.many", people.MaxPeople)
	case err != nil:
		return err
	}
	if !f.OK() {
		return d.people(v, t)
	}
	d.mails.invitation(v.Lang, email, t.User.Email, token)
	return v.Redirect("/people", "flash.invited")
}

// withdrawInvitation is POST /invitations/:id/withdraw.
func (d *Dashboard) withdrawInvitation(v *web.Visit, t web.Tenant) error {
	return v.Done(d.by(v).Uninvite(v.Ctx(), t.Company.ID, v.ID()), "/people", "flash.uninvited")
}

// setRole is POST /people/:id/role.
func (d *Dashboard) setRole(v *web.Visit, t web.Tenant) error {
	role := role(v.Form())
	if !v.Form().OK() {
		return d.people(v, t)
	}
	return d.changePerson(v, t, role, "flash.role")
}

// removePerson is POST /people/:id/remove.
func (d *Dashboard) removePerson(v *web.Visit, t web.Tenant) error {
	return d.changePerson(v, t, "", "flash.removed")
}

// changePerson changes the role of the person in the path, or removes them.
func (d *Dashboard) changePerson(v *web.Visit, t web.Tenant, role accounts.Role, flash string) error {
	err := d.by(v).SetRole(v.Ctx(), t.Company.ID, v.ID(), role)
	if errors.Is(err, people.ErrLastOwner) {
		v.Form().Fail("people.last")
		return d.people(v, t)
	}
	to := "/people"
	if v.ID() == t.User.ID && role != accounts.RoleOwner { // the page is no longer theirs
		to = "/"
	}
	return v.Done(err, to, flash)
}
