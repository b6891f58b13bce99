package dashboard

import (
	"errors"
	"fmt"
	"net/http"

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
}

// company is GET /company.
func (d *Dashboard) company(v *visit, t tenant) {
	credits, err := d.rooms.Ledger.Balance(v.ctx(), t.Company.ID)
	if err != nil {
		v.handleError("reading a balance", err)
		return
	}
	v.render(http.StatusOK, "company", companyPage{t.Company, t.User.Email, credits})
}

// newCompany is GET /company/new.
func (d *Dashboard) newCompany(v *visit, s *accounts.Session) {
	if s.Company != nil {
		v.redirect("/company", "")
		return
	}
	v.render(http.StatusOK, "newcompany", nil)
}

// createCompany is POST /company/new.
func (d *Dashboard) createCompany(v *visit, s *accounts.Session) {
	f := v.form()
	name := f.name("name")
	if !f.ok() {
		v.renderForm("newcompany", nil, f)
		return
	}
	err := pgx.BeginFunc(v.ctx(), d.rooms.Pool, func(tx pgx.Tx) error {
		c, err := d.rooms.Accounts.In(tx).CreateCompany(v.ctx(), tx, accounts.NewCompany{OwnerEmail: s.User.Email, Name: name})
		if err != nil {
			return err
		}
		if err := billing.Open(v.ctx(), tx, c.ID); err != nil {
			return err
		}
		return audit.Record(v.ctx(), tx, audit.Entry{Actor: audit.User(s.User.ID), Act: "company.create", Subject: fmt.Sprintf("company %d", c.ID),
			Company: sms.CompanyID(c.ID), After: map[string]any{"name": c.Name, "owner_id": c.OwnerID, "approved": c.Approved, "verified": c.Verified}})
	})
	switch {
	case errors.Is(err, accounts.ErrExists): // a second click
		v.redirect("/company", "")
	case err != nil:
		v.handleError("creating a company", err)
	default:
		v.redirect("/company", "flash.company")
	}
}
