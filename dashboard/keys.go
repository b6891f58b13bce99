package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/audit"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

type keysPage struct {
	Keys          []accounts.Token
	Made          *newKey
	Scopes, Lives []option
	Limited       bool // the form has limits
}

// keys is GET /keys.
func (d *Dashboard) keys(v *visit, s *accounts.Session) (err error) {
	var data keysPage
	if data.Keys, err = v.tokens(); err != nil {
		return err
	}
	var test testMode
	if s.Company != nil { // before the new key is taken: a later failure would lose it
		if test, err = v.testMode(*s.Company); err != nil {
			return err
		}
	}
	made, err := v.takeOnce("key")
	var k newKey
	if err == nil && made != "" && json.Unmarshal([]byte(made), &k) == nil {
		for _, t := range data.Keys {
			if strings.HasPrefix(k.Text, strconv.FormatInt(t.ID, 10)+"|") {
				k.Token, data.Made = t, &k
			}
		}
		if s.Company != nil {
			v.example(&k, test)
		}
	}
	f := v.form()
	data.Limited = f.Value("scope")+f.Value("days")+f.Value("networks") != ""
	data.Scopes = v.options("", "keys.scope.both", accounts.ScopeSend, "keys.scope.send", accounts.ScopeRead, "keys.scope.read")
	data.Lives = v.options("", "keys.days.none", "30", "keys.days.30", "90", "keys.days.90", "365", "keys.days.365")
	return v.page(err, "keys", data)
}

// tokens returns the API keys of the user's company, or those of a user without one.
func (v *visit) tokens() ([]accounts.Token, error) {
	if company := v.session.Company; company != nil {
		return v.d.rooms.Accounts.TokensOfCompany(v.ctx(), company.ID)
	}
	return v.d.rooms.Accounts.TokensOf(v.ctx(), v.session.User.ID)
}

// tokenLimits returns the limits of a new key.
func (f *form) tokenLimits() (limits accounts.TokenLimits) {
	var err error
	switch scope := f.Value("scope"); scope {
	case "":
	case accounts.ScopeSend, accounts.ScopeRead:
		limits.Scopes = []string{scope}
	default:
		f.refuse("scope", "error.required")
	}
	switch days := f.Value("days"); days {
	case "":
	case "30", "90", "365":
		n, _ := strconv.Atoi(days)
		limits.ExpiresAt = new(postgres.Now().AddDate(0, 0, n).Truncate(time.Second))
	default:
		f.refuse("days", "error.required")
	}
	if limits.Networks, err = accounts.ParseNetworks(f.Value("networks")); err != nil {
		f.refuse("networks", "keys.networks.wrong", accounts.MaxNetworks)
	}
	return limits
}

// createKey is POST /keys.
func (d *Dashboard) createKey(v *visit, s *accounts.Session) error {
	f := v.form()
	name, limits := f.name("name"), f.tokenLimits()
	if !f.ok() {
		return d.keys(v, s)
	}
	err := v.changeBusy(func(tx pgx.Tx) (audit.Entry, error) {
		made, key, err := d.rooms.Accounts.In(tx).CreateOwnToken(v.ctx(), s.User.ID, name, limits)
		if err != nil {
			return audit.Entry{}, err
		}
		return audit.Entry{Act: "token.create", Subject: fmt.Sprintf("token %d", made.ID), After: made.Recorded()},
			v.keepOnceIn(tx, "key", newKey{Text: key}.keepText())
	})
	if errors.Is(err, accounts.ErrTooMany) {
		f.notice("keys.many", accounts.MaxTokens)
		return d.keys(v, s)
	}
	return v.done(err, "/keys", "")
}

// revokeKey is POST /keys/:id/revoke.
func (d *Dashboard) revokeKey(v *visit, s *accounts.Session) error {
	_, err := v.revoke(func(t accounts.Token, company int64) bool {
		return t.UserID == s.User.ID || s.Company != nil && company == s.Company.ID
	})
	return v.done(err, "/keys", "flash.revoked")
}

// revokeAnyKey is POST /admin/keys/:id/revoke.
func (d *Dashboard) revokeAnyKey(v *visit) error {
	company, err := v.revoke(func(accounts.Token, int64) bool { return true })
	home := "/admin/companies"
	if company != 0 {
		home = companyPath(company)
	}
	return v.done(err, home, "flash.revoked")
}

// revoke revokes the key in the path, if permitted, and returns its user's company; 0 without one.
func (v *visit) revoke(may func(t accounts.Token, company int64) bool) (company int64, err error) {
	id := v.id()
	err = v.change(func(tx pgx.Tx) (entry audit.Entry, err error) {
		users := v.d.rooms.Accounts.In(tx)
		before, err := users.TokenByID(v.ctx(), id)
		if err != nil {
			return entry, err
		}
		of, err := users.CompanyOf(v.ctx(), before.UserID)
		if err != nil && !errors.Is(err, accounts.ErrNotFound) {
			return entry, err
		}
		if !may(before, of.ID) {
			return entry, errNotFound
		}
		if company = of.ID; before.RevokedAt != nil {
			return entry, nil
		}
		return audit.Entry{Act: "token.revoke", Subject: fmt.Sprintf("token %d", id), Company: sms.CompanyID(company),
			Before: map[string]any{"user_id": before.UserID, "name": before.Name, "revoked": false},
			After:  map[string]any{"user_id": before.UserID, "name": before.Name, "revoked": true}}, users.RevokeToken(v.ctx(), id)
	})
	return company, err
}
