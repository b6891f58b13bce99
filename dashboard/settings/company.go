package settings

import (
	"errors"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

type companyPage struct {
	Company accounts.Company
	Owner   string
	Credits int64
	Facts   companies.Facts
}

// CanState reports whether the company can state or change its facts.
func (p *companyPage) CanState() bool { return !p.Company.Approved || p.Facts.NIF == "" }

// CanUpload reports whether the company can upload a document.
func (p *companyPage) CanUpload() bool { return !p.Company.Approved || p.Facts.Document.Name == "" }

// Company is GET /company.
func (ps *Pages) Company(v *web.Visit, t web.Tenant) error {
	credits, err := ps.Deps.Ledger.Balance(v.Ctx(), t.Company.ID)
	if err != nil {
		return err
	}
	owner, err := ps.Owner(v, t)
	if err != nil {
		return err
	}
	facts, err := ps.Deps.Companies.FactsOf(v.Ctx(), t.CompanyID())
	return v.Page(err, "company", &companyPage{t.Company, owner, credits, facts})
}

// Owner returns the recipient of mails about the company.
func (ps *Pages) Owner(v *web.Visit, t web.Tenant) (string, error) {
	if t.User.ID == t.Company.OwnerID {
		return t.User.Email, nil
	}
	owner, err := ps.Deps.People.UserByID(v.Ctx(), t.Company.OwnerID)
	return owner.Email, err
}

// NewCompany is GET /company/new.
func (ps *Pages) NewCompany(v *web.Visit, s *people.Session) error {
	if s.Company != nil {
		return v.Redirect("/company", "")
	}
	return v.Render("newcompany", nil)
}

// CreateCompany is POST /company/new.
func (ps *Pages) CreateCompany(v *web.Visit, s *people.Session) error {
	f := v.Form()
	name := f.Name("name")
	if !f.OK() {
		return ps.NewCompany(v, s)
	}
	_, err := ps.By(v).CreateCompany(v.Ctx(), companies.NewCompany{OwnerEmail: s.User.Email, Name: name}, 0)
	if errors.Is(err, accounts.ErrExists) { // a second click
		return v.Redirect("/company", "")
	}
	return v.Done(err, "/", "flash.company")
}
