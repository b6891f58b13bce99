package develop

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
	"intumwa/dashboard/testmode"
	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
)

type keysPage struct {
	Keys          []keys.Token
	Made          []*newKey // the latest has an example
	Scopes, Lives []web.Option
	Limited       bool // the form has limits
}

// Keys is GET /keys.
func (ps *Pages) Keys(v *web.Visit, s *people.Session) (err error) {
	var data keysPage
	if data.Keys, err = ps.Tokens(v); err != nil {
		return err
	}
	var test testmode.Mode
	if s.Company != nil { // before the new key is taken: a later failure would lose it
		if test, err = ps.Test.Mode(v, *s.Company); err != nil {
			return err
		}
	}
	made, err := v.TakeOnce("key")
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
			ps.example(v, data.Made[n-1], test)
		}
	}
	f := v.Form()
	f.FormKey()
	data.Limited = f.Value("scope")+f.Value("days")+f.Value("networks") != ""
	data.Scopes = v.Options("", "keys.scope.both", accounts.ScopeSend, "keys.scope.send", accounts.ScopeRead,
		"keys.scope.read")
	data.Lives = v.Options("", "keys.days.none", "30", "keys.days.30", "90", "keys.days.90", "365", "keys.days.365")
	return v.Page(err, "keys", data)
}

// Tokens returns the API keys of the user's company, or those of a user without one. Keys of kind SMPP are on their own
// page.
func (ps *Pages) Tokens(v *web.Visit) (own []keys.Token, err error) {
	if company := v.Session.Company; company != nil {
		own, err = ps.Deps.Keys.TokensOfCompany(v.Ctx(), company.ID)
	} else {
		own, err = ps.Deps.Keys.TokensOf(v.Ctx(), v.Session.User.ID)
	}
	return slices.DeleteFunc(own, func(t keys.Token) bool { return t.SystemID != "" }), err
}

// tokenLimits returns the limits of a new key.
func tokenLimits(f *web.Form) (limits accounts.TokenLimits) {
	switch scope := f.Value("scope"); scope {
	case "":
	case accounts.ScopeSend, accounts.ScopeRead:
		limits.Scopes = []string{scope}
	default:
		f.Refuse("scope", "error.required")
	}
	switch days := f.Value("days"); days {
	case "":
	case "30", "90", "365":
		n, _ := strconv.Atoi(days)
		limits.ExpiresAt = new(postgres.Now().AddDate(0, 0, n).Truncate(time.Second))
	default:
		f.Refuse("days", "error.required")
	}
	limits.Networks = networks(f, f.Value("networks"))
	return limits
}

// networks returns the networks of the field with that name, whose text is given.
func networks(f *web.Form, text string) []netip.Prefix {
	networks, err := keys.ParseNetworks(text)
	if err != nil {
		f.Refuse("networks", "keys.networks.wrong", keys.MaxNetworks)
	}
	return networks
}

// CreateKey is POST /keys.
func (ps *Pages) CreateKey(v *web.Visit, s *people.Session) error {
	f := v.Form()
	name, limits := f.Name("name"), tokenLimits(f)
	if !f.OK() {
		return ps.Keys(v, s)
	}
	_, _, err := ps.By(v).CreateToken(v.Ctx(), s.User.Email, true, name, limits, func(tx pgx.Tx, text string) error {
		return v.KeepFirst(tx, "key "+f.FormKey(), newKey{Text: text}.keepText())
	})
	if errors.Is(err, accounts.ErrExists) { // a second click: the next page shows the key
		err = nil
	}
	if errors.Is(err, accounts.ErrTooMany) {
		f.Fail("keys.many", keys.MaxTokens)
		return ps.Keys(v, s)
	}
	return v.Done(err, "/keys", "")
}

// RevokeKey is POST /keys/:id/revoke.
func (ps *Pages) RevokeKey(v *web.Visit, s *people.Session) error {
	return v.Done(ps.revokeOwn(v, s), "/keys", "flash.revoked")
}

// revokeOwn revokes a key of the user or of the company, of any kind.
func (ps *Pages) revokeOwn(v *web.Visit, s *people.Session) error {
	_, err := ps.By(v).RevokeToken(v.Ctx(), v.ID(), func(owner people.User) bool {
		return owner.ID == s.User.ID || s.Company != nil && owner.Company == s.Company.ID
	})
	return err
}
