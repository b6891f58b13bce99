package dashboard

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

// company is GET /company.
func (d *Dashboard) company(v *web.Visit, t web.Tenant) error {
	credits, err := d.rooms.Ledger.Balance(v.Ctx(), t.Company.ID)
	if err != nil {
		return err
	}
	owner, err := d.owner(v, t)
	if err != nil {
		return err
	}
	facts, err := d.rooms.Companies.FactsOf(v.Ctx(), t.CompanyID())
	return v.Page(err, "company", &companyPage{t.Company, owner, credits, facts})
}

// owner returns the recipient of mails about the company.
func (d *Dashboard) owner(v *web.Visit, t web.Tenant) (string, error) {
	if t.User.ID == t.Company.OwnerID {
		return t.User.Email, nil
	}
	owner, err := d.rooms.People.UserByID(v.Ctx(), t.Company.OwnerID)
	return owner.Email, err
}

// newCompany is GET /company/new.
func (d *Dashboard) newCompany(v *web.Visit, s *people.Session) error {
	if s.Company != nil {
		return v.Redirect("/company", "")
	}
	return v.Render("newcompany", nil)
}

// createCompany is POST /company/new.
func (d *Dashboard) createCompany(v *web.Visit, s *people.Session) error {
	f := v.Form()
	name := f.Name("name")
	if !f.OK() {
		return d.newCompany(v, s)
	}
	_, err := d.by(v).CreateCompany(v.Ctx(), companies.NewCompany{OwnerEmail: s.User.Email, Name: name}, 0)
	if errors.Is(err, accounts.ErrExists) { // a second click
		return v.Redirect("/company", "")
	}
	return v.Done(err, "/", "flash.company")
}
