package dashboard

import (
	"errors"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/people"
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
func (d *Dashboard) company(v *visit, t tenant) error {
	credits, err := d.rooms.Ledger.Balance(v.ctx(), t.Company.ID)
	if err != nil {
		return err
	}
	owner, err := v.owner(t)
	if err != nil {
		return err
	}
	facts, err := d.rooms.Companies.FactsOf(v.ctx(), t.company())
	return v.page(err, "company", &companyPage{t.Company, owner, credits, facts})
}

// owner returns the recipient of mails about the company.
func (v *visit) owner(t tenant) (string, error) {
	if t.User.ID == t.Company.OwnerID {
		return t.User.Email, nil
	}
	owner, err := v.d.rooms.People.UserByID(v.ctx(), t.Company.OwnerID)
	return owner.Email, err
}

// newCompany is GET /company/new.
func (d *Dashboard) newCompany(v *visit, s *people.Session) error {
	if s.Company != nil {
		return v.redirect("/company", "")
	}
	return v.render("newcompany", nil)
}

// createCompany is POST /company/new.
func (d *Dashboard) createCompany(v *visit, s *people.Session) error {
	f := v.form()
	name := f.name("name")
	if !f.ok() {
		return d.newCompany(v, s)
	}
	_, err := v.by().CreateCompany(v.ctx(), companies.NewCompany{OwnerEmail: s.User.Email, Name: name}, 0)
	if errors.Is(err, accounts.ErrExists) { // a second click
		return v.redirect("/company", "")
	}
	return v.done(err, "/", "flash.company")
}
