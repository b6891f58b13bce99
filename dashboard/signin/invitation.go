package signin

import (
	"errors"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// invited returns the invitation in the path and its company's name. If its address has an account, the session must
// belong to that account, and known is true. Otherwise the visitor creates an account.
func (ps *Pages) invited(v *web.Visit) (link people.Link, company string, known bool, err error) {
	if link, err = ps.Deps.SignIn.InvitationLink(v.Ctx(), v.C.Param("token")); err != nil {
		return link, "", false, linkGone(err)
	}
	of, err := ps.Deps.Companies.CompanyByID(v.Ctx(), link.Company)
	if err != nil {
		return link, "", false, err
	}
	switch _, err = ps.Deps.People.UserByEmail(v.Ctx(), link.Email); {
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

// Invitation is GET /invitation/:token. It changes nothing, because mail scanners follow links too.
func (ps *Pages) Invitation(v *web.Visit) error {
	link, company, known, err := ps.invited(v)
	if err != nil {
		return err
	}
	role := web.RoleTexts[link.Role]
	title, text := v.Lang.T("invitation.title", company),
		v.Lang.T("invitation.text", v.Lang.T(role.Name), v.Lang.T(role.Text))
	switch {
	case !known:
		return choose(v, ps.Deps.SignIn.InvitationLink, title, text, "finish.button")
	case v.Session == nil:
		return v.RedirectToSignIn("/sign-in")
	case !v.Session.Passed:
		return v.RedirectToSignIn("/sign-in/code")
	}
	return v.Render("invitation", struct{ Title, Text string }{title, text})
}

// DoInvitation is POST /invitation/:token.
func (ps *Pages) DoInvitation(v *web.Visit) error {
	_, _, known, err := ps.invited(v)
	switch {
	case err != nil:
		return err
	case !known:
		return ps.chosen(v, ps.Invitation, ps.Deps.SignIn.InvitationLink, ps.FinishInvitation, "flash.welcome")
	case v.Session == nil || !v.Session.Passed:
		return ps.Invitation(v)
	}
	err = ps.By(v).Join(v.Ctx(), v.C.Param("token"), v.Session.User)
	if errors.Is(err, accounts.ErrNotFound) || errors.Is(err, accounts.ErrExists) { // already used
		err = web.ErrLinkGone
	}
	return v.Done(err, "/", "flash.joined")
}
