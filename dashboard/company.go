package dashboard

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/internal/audit"
	"intumwa/sms"
)

type companyPage struct {
	Company accounts.Company
	Owner   string
	Credits int64
	Facts   accounts.Facts
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
	facts, err := d.rooms.Accounts.FactsOf(v.ctx(), t.company())
	return v.page(err, "company", &companyPage{t.Company, owner, credits, facts})
}

// owner returns the recipient of mails about the company.
func (v *visit) owner(t tenant) (string, error) {
	if t.User.ID == t.Company.OwnerID {
		return t.User.Email, nil
	}
	owner, err := v.d.rooms.Accounts.UserByID(v.ctx(), t.Company.OwnerID)
	return owner.Email, err
}

// newCompany is GET /company/new.
func (d *Dashboard) newCompany(v *visit, s *accounts.Session) error {
	if s.Company != nil {
		return v.redirect("/company", "")
	}
	return v.render("newcompany", nil)
}

// createCompany is POST /company/new.
func (d *Dashboard) createCompany(v *visit, s *accounts.Session) error {
	f := v.form()
	name := f.name("name")
	if !f.ok() {
		return d.newCompany(v, s)
	}
	err := v.change(func(tx pgx.Tx) (audit.Entry, error) {
		c, err := d.rooms.Accounts.In(tx).CreateCompany(v.ctx(), tx, accounts.NewCompany{OwnerEmail: s.User.Email, Name: name})
		if err != nil {
			return audit.Entry{}, err
		}
		return audit.Entry{Act: "company.create", Subject: fmt.Sprintf("company %d", c.ID), Company: sms.CompanyID(c.ID),
			After: map[string]any{"name": c.Name, "owner_id": c.OwnerID, "approved": c.Approved, "verified": c.Verified}}, billing.Open(v.ctx(), tx, c.ID)
	})
	if errors.Is(err, accounts.ErrExists) { // a second click
		return v.redirect("/company", "")
	}
	return v.done(err, "/", "flash.company")
}
