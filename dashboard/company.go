package dashboard

import (
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/billing"
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
		v.fail("reading a balance", err)
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
	if f == nil {
		return
	}
	name := f.name("name")
	if !f.ok() {
		v.again("newcompany", nil, f)
		return
	}
	err := pgx.BeginFunc(v.ctx(), d.rooms.Pool, func(tx pgx.Tx) error {
		c, err := d.rooms.Accounts.CreateCompany(v.ctx(), tx, accounts.NewCompany{OwnerEmail: s.User.Email, Name: name})
		if err != nil {
			return err
		}
		return billing.Open(v.ctx(), tx, c.ID)
	})
	switch {
	case errors.Is(err, accounts.ErrExists): // a second click
		v.redirect("/company", "")
	case err != nil:
		v.fail("creating a company", err)
	default:
		v.redirect("/company", "flash.company")
	}
}
