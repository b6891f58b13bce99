package dashboard

import (
	"errors"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// invited returns the invitation in the path and its company's name. If its address has an account, the session must
// belong to that account, and known is true. Otherwise the visitor creates an account.
func (d *Dashboard) invited(v *web.Visit) (link people.Link, company string, known bool, err error) {
	if link, err = d.rooms.SignIn.InvitationLink(v.Ctx(), v.C.Param("token")); err != nil {
		return link, "", false, linkGone(err)
	}
	of, err := d.rooms.Companies.CompanyByID(v.Ctx(), link.Company)
	if err != nil {
		return link, "", false, err
	}
	switch _, err = d.rooms.People.UserByEmail(v.Ctx(), link.Email); {
	case errors.Is(err, accounts.ErrNotFound):
		return link, of.Name, false, nil
	case err != nil:
		return link, "", false, err
	case v.Session == nil || !v.Session.Passed:
		return link, of.Name, true, nil
	case v.Session.User.Email != link.Email:
		return link, "", false, web.ErrInvitee
	case v.Session.Company != nil:
		return link, "", false, web.ErrElsewhere
	}
	return link, of.Name, true, nil
}

// invitation is GET /invitation/:token. It changes nothing, because mail scanners follow links too.
func (d *Dashboard) invitation(v *web.Visit) error {
	link, company, known, err := d.invited(v)
	if err != nil {
		return err
	}
	role := web.RoleTexts[link.Role]
	title, text := v.Lang.T("invitation.title", company), v.Lang.T("invitation.text", v.Lang.T(role.Name), v.Lang.T(role.Text))
	switch {
	case !known:
		return choose(v, d.rooms.SignIn.InvitationLink, title, text, "finish.button")
	case v.Session == nil:
		return v.RedirectToSignIn("/sign-in")
	case !v.Session.Passed:
		return v.RedirectToSignIn("/sign-in/code")
	}
	return v.Render("invitation", struct{ Title, Text string }{title, text})
}

// doInvitation is POST /invitation/:token.
func (d *Dashboard) doInvitation(v *web.Visit) error {
	_, _, known, err := d.invited(v)
	switch {
	case err != nil:
		return err
	case !known:
		return d.chosen(v, d.invitation, d.rooms.SignIn.InvitationLink, d.operations.FinishInvitation, "flash.welcome")
	case v.Session == nil || !v.Session.Passed:
		return d.invitation(v)
	}
	err = d.by(v).Join(v.Ctx(), v.C.Param("token"), v.Session.User)
	if errors.Is(err, accounts.ErrNotFound) || errors.Is(err, accounts.ErrExists) { // already used
		err = web.ErrLinkGone
	}
	return v.Done(err, "/", "flash.joined")
}
