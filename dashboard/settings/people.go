package settings

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

// People is GET /people.
func (ps *Pages) People(v *web.Visit, t web.Tenant) (err error) {
	data := peoplePage{Names: web.RoleNames(v.Lang), Explained: map[string]string{}}
	for _, role := range accounts.Roles {
		data.Roles = append(data.Roles, web.Option{Value: string(role), Text: data.Names[role]})
		data.Explained[string(role)] = v.Lang.T(web.RoleTexts[role].Text)
	}
	if data.People, err = ps.Deps.People.PeopleOf(v.Ctx(), t.Company.ID); err != nil {
		return err
	}
	data.Invitations, err = ps.Deps.People.InvitationsOf(v.Ctx(), t.Company.ID)
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

// Invite is POST /people: it mails an invitation.
func (ps *Pages) Invite(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	name, role, email := f.Name("name"), role(f), ps.Mailed(f, "email")
	if !f.OK() {
		return ps.People(v, t)
	}
	token, err := ps.By(v).Invite(v.Ctx(), people.NewInvitation{Company: t.Company.ID, Email: email, Name: name,
		Role: role, Language: v.Lang.Tag})
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
		return ps.People(v, t)
	}
	ps.MailInvitation(v.Lang, email, t.User.Email, token)
	return v.Redirect("/people", "flash.invited")
}

// WithdrawInvitation is POST /invitations/:id/withdraw.
func (ps *Pages) WithdrawInvitation(v *web.Visit, t web.Tenant) error {
	return v.Done(ps.By(v).Uninvite(v.Ctx(), t.Company.ID, v.ID()), "/people", "flash.uninvited")
}

// SetRole is POST /people/:id/role.
func (ps *Pages) SetRole(v *web.Visit, t web.Tenant) error {
	role := role(v.Form())
	if !v.Form().OK() {
		return ps.People(v, t)
	}
	return ps.changePerson(v, t, role, "flash.role")
}

// RemovePerson is POST /people/:id/remove.
func (ps *Pages) RemovePerson(v *web.Visit, t web.Tenant) error {
	return ps.changePerson(v, t, "", "flash.removed")
}

// changePerson changes the role of the person in the path, or removes them.
func (ps *Pages) changePerson(v *web.Visit, t web.Tenant, role accounts.Role, flash string) error {
	err := ps.By(v).SetRole(v.Ctx(), t.Company.ID, v.ID(), role)
	if errors.Is(err, people.ErrLastOwner) {
		v.Form().Fail("people.last")
		return ps.People(v, t)
	}
	to := "/people"
	if v.ID() == t.User.ID && role != accounts.RoleOwner { // the page is no longer theirs
		to = "/"
	}
	return v.Done(err, to, flash)
}
