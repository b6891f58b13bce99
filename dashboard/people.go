package dashboard

import (
	"errors"
	"slices"

	"intumwa/accounts"
	"intumwa/accounts/people"
)

type peoplePage struct {
	People      []people.User
	Invitations []people.Invitation
	Roles       []option                 // with their names
	Names       map[accounts.Role]string // the same
	Explained   map[string]string        // by role
}

// roleTexts are the keys of a role's name and of its explanation.
var roleTexts = map[accounts.Role]struct{ name, text string }{
	accounts.RoleOwner:     {"role.owner", "role.owner.text"},
	accounts.RoleSender:    {"role.sender", "role.sender.text"},
	accounts.RoleDeveloper: {"role.developer", "role.developer.text"},
	accounts.RoleFinance:   {"role.finance", "role.finance.text"},
	accounts.RoleReader:    {"role.reader", "role.reader.text"},
}

// people is GET /people.
func (d *Dashboard) people(v *visit, t tenant) (err error) {
	data := peoplePage{Names: v.roleNames(), Explained: map[string]string{}}
	for _, role := range accounts.Roles {
		data.Roles = append(data.Roles, option{string(role), data.Names[role]})
		data.Explained[string(role)] = v.lang.T(roleTexts[role].text)
	}
	if data.People, err = d.rooms.People.PeopleOf(v.ctx(), t.Company.ID); err != nil {
		return err
	}
	data.Invitations, err = d.rooms.People.InvitationsOf(v.ctx(), t.Company.ID)
	return v.page(err, "people", data)
}

// roleNames returns the names of all roles.
func (v *visit) roleNames() map[accounts.Role]string {
	names := map[accounts.Role]string{}
	for role, texts := range roleTexts {
		names[role] = v.lang.T(texts.name)
	}
	return names
}

// role returns the chosen role.
func (f *form) role() accounts.Role {
	role := accounts.Role(f.Value("role"))
	if !slices.Contains(accounts.Roles, role) {
		f.refuse("role", "error.required")
	}
	return role
}

// invite is POST /people: it mails an invitation.
func (d *Dashboard) invite(v *visit, t tenant) error {
	f := v.form()
	name, role, email := f.name("name"), f.role(), f.mailed("email")
	if !f.ok() {
		return d.people(v, t)
	}
	token, err := v.by().Invite(v.ctx(), people.NewInvitation{Company: t.Company.ID, Email: email, Name: name, Role: role, Language: v.lang.Tag})
	switch {
	case errors.Is(err, accounts.ErrInvalid):
		f.refuse("email", "error.email")
	case errors.Is(err, accounts.ErrExists):
		f.refuse("email", "people.already")
	case errors.Is(err, accounts.ErrTooMany):
		f.notice("people.many", people.MaxPeople)
	case err != nil:
		return err
	}
	if !f.ok() {
		return d.people(v, t)
	}
	d.mailInvitation(v.lang, email, t.User.Email, token)
	return v.redirect("/people", "flash.invited")
}

// withdrawInvitation is POST /invitations/:id/withdraw.
func (d *Dashboard) withdrawInvitation(v *visit, t tenant) error {
	return v.done(v.by().Uninvite(v.ctx(), t.Company.ID, v.id()), "/people", "flash.uninvited")
}

// setRole is POST /people/:id/role.
func (d *Dashboard) setRole(v *visit, t tenant) error {
	role := v.form().role()
	if !v.form().ok() {
		return d.people(v, t)
	}
	return v.changePerson(t, role, "flash.role")
}

// removePerson is POST /people/:id/remove.
func (d *Dashboard) removePerson(v *visit, t tenant) error {
	return v.changePerson(t, "", "flash.removed")
}

// changePerson changes the role of the person in the path, or removes them.
func (v *visit) changePerson(t tenant, role accounts.Role, flash string) error {
	err := v.by().SetRole(v.ctx(), t.Company.ID, v.id(), role)
	if errors.Is(err, people.ErrLastOwner) {
		v.form().notice("people.last")
		return v.d.people(v, t)
	}
	to := "/people"
	if v.id() == t.User.ID && role != accounts.RoleOwner { // the page is no longer theirs
		to = "/"
	}
	return v.done(err, to, flash)
}

// invited returns the invitation in the path and its company's name. If its address has an account, the session must
// belong to that account, and known is true. Otherwise the visitor creates an account.
func (v *visit) invited() (link people.Link, company string, known bool, err error) {
	if link, err = v.d.rooms.SignIn.InvitationLink(v.ctx(), v.c.Param("token")); err != nil {
		return link, "", false, linkGone(err)
	}
	of, err := v.d.rooms.Companies.CompanyByID(v.ctx(), link.Company)
	if err != nil {
		return link, "", false, err
	}
	switch _, err = v.d.rooms.People.UserByEmail(v.ctx(), link.Email); {
	case errors.Is(err, accounts.ErrNotFound):
		return link, of.Name, false, nil
	case err != nil:
		return link, "", false, err
	case v.session == nil || !v.session.Passed:
		return link, of.Name, true, nil
	case v.session.User.Email != link.Email:
		return link, "", false, errInvitee
	case v.session.Company != nil:
		return link, "", false, errElsewhere
	}
	return link, of.Name, true, nil
}

// invitation is GET /invitation/:token. It changes nothing, because mail scanners follow links too.
func (d *Dashboard) invitation(v *visit) error {
	link, company, known, err := v.invited()
	if err != nil {
		return err
	}
	role := roleTexts[link.Role]
	title, text := v.lang.T("invitation.title", company), v.lang.T("invitation.text", v.lang.T(role.name), v.lang.T(role.text))
	switch {
	case !known:
		return v.choose(d.rooms.SignIn.InvitationLink, title, text, "finish.button")
	case v.session == nil:
		return v.redirectToSignIn("/sign-in")
	case !v.session.Passed:
		return v.redirectToSignIn("/sign-in/code")
	}
	return v.render("invitation", struct{ Title, Text string }{title, text})
}

// doInvitation is POST /invitation/:token.
func (d *Dashboard) doInvitation(v *visit) error {
	_, _, known, err := v.invited()
	switch {
	case err != nil:
		return err
	case !known:
		return v.chosen(d.invitation, d.rooms.SignIn.InvitationLink, d.operations.FinishInvitation, "flash.welcome")
	case v.session == nil || !v.session.Passed:
		return d.invitation(v)
	}
	err = v.by().Join(v.ctx(), v.c.Param("token"), v.session.User)
	if errors.Is(err, accounts.ErrNotFound) || errors.Is(err, accounts.ErrExists) { // already used
		err = errLinkGone
	}
	return v.done(err, "/", "flash.joined")
}
