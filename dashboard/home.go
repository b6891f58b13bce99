package dashboard

import (
	"net/http"

	"intumwa/accounts"
)

type homePage struct {
	HasCompany, HasKey bool
	Credits            int64
}

// home is GET /.
func (d *Dashboard) home(v *visit, s *accounts.Session) {
	data := homePage{HasCompany: s.Company != nil}
	tokens, err := d.rooms.Accounts.TokensOf(v.ctx(), s.User.ID)
	if err == nil && data.HasCompany {
		data.Credits, err = d.rooms.Ledger.Balance(v.ctx(), s.Company.ID)
	}
	if err != nil {
		v.fail("reading the start page", err)
		return
	}
	for _, t := range tokens {
		data.HasKey = data.HasKey || t.RevokedAt == nil
	}
	v.render(http.StatusOK, "home", data)
}
