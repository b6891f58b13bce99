package dashboard

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/internal/postgres"
)

type keysPage struct {
	Keys          []keys.Token
	Made          []*newKey // the latest has an example
	Scopes, Lives []option
	Limited       bool // the form has limits
}

// keys is GET /keys.
func (d *Dashboard) keys(v *visit, s *people.Session) (err error) {
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
	for kept := json.NewDecoder(strings.NewReader(made)); kept.More(); { // the earliest first
		var k newKey
		if err := kept.Decode(&k); err != nil {
			return err
		}
		for _, t := range data.Keys {
			if strings.HasPrefix(k.Text, strconv.FormatInt(t.ID, 10)+"|") {
				k.Token = t
				data.Made = append(data.Made, &k)
			}
		}
	}
	slices.SortFunc(data.Made, func(a, b *newKey) int { return cmp.Compare(a.Token.ID, b.Token.ID) })
	if n := len(data.Made); n > 0 {
		if data.Made[n-1].Example = true; s.Company != nil {
			v.example(data.Made[n-1], test)
		}
	}
	f := v.form()
	f.formKey()
	data.Limited = f.Value("scope")+f.Value("days")+f.Value("networks") != ""
	data.Scopes = v.options("", "keys.scope.both", accounts.ScopeSend, "keys.scope.send", accounts.ScopeRead, "keys.scope.read")
	data.Lives = v.options("", "keys.days.none", "30", "keys.days.30", "90", "keys.days.90", "365", "keys.days.365")
	return v.page(err, "keys", data)
}

// tokens returns the API keys of the user's company, or those of a user without one. Keys of kind SMPP are on their own page.
func (v *visit) tokens() (own []keys.Token, err error) {
	if company := v.session.Company; company != nil {
		own, err = v.d.rooms.Keys.TokensOfCompany(v.ctx(), company.ID)
	} else {
		own, err = v.d.rooms.Keys.TokensOf(v.ctx(), v.session.User.ID)
	}
	return slices.DeleteFunc(own, func(t keys.Token) bool { return t.SystemID != "" }), err
}

// tokenLimits returns the limits of a new key.
func (f *form) tokenLimits() (limits accounts.TokenLimits) {
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
	limits.Networks = f.networks(f.Value("networks"))
	return limits
}

// networks returns the networks of the field with that name, whose text is given.
func (f *form) networks(text string) []netip.Prefix {
	networks, err := keys.ParseNetworks(text)
	if err != nil {
		f.refuse("networks", "keys.networks.wrong", keys.MaxNetworks)
	}
	return networks
}

// createKey is POST /keys.
func (d *Dashboard) createKey(v *visit, s *people.Session) error {
	f := v.form()
	name, limits := f.name("name"), f.tokenLimits()
	if !f.ok() {
		return d.keys(v, s)
	}
	_, _, err := v.by().CreateToken(v.ctx(), s.User.Email, true, name, limits, func(tx pgx.Tx, text string) error {
		return d.rooms.Sessions.In(tx).KeepFirst(v.ctx(), v.token, "key "+f.formKey(), newKey{Text: text}.keepText())
	})
	if errors.Is(err, accounts.ErrExists) { // a second click: the next page shows the key
		err = nil
	}
	if errors.Is(err, accounts.ErrTooMany) {
		f.notice("keys.many", keys.MaxTokens)
		return d.keys(v, s)
	}
	return v.done(err, "/keys", "")
}

// revokeKey is POST /keys/:id/revoke.
func (d *Dashboard) revokeKey(v *visit, s *people.Session) error {
	return v.done(v.revokeOwn(s), "/keys", "flash.revoked")
}

// revokeOwn revokes a key of the user or of the company, of any kind.
func (v *visit) revokeOwn(s *people.Session) error {
	_, err := v.by().RevokeToken(v.ctx(), v.id(), func(owner people.User) bool {
		return owner.ID == s.User.ID || s.Company != nil && owner.Company == s.Company.ID
	})
	return err
}

// revokeAnyKey is POST /admin/keys/:id/revoke.
func (d *Dashboard) revokeAnyKey(v *visit) error {
	company, err := v.by().RevokeToken(v.ctx(), v.id(), nil)
	home := "/admin/companies"
	if company != 0 {
		home = companyPath(company)
	}
	return v.done(err, v.returnPath(home), "flash.revoked")
}
