package keys

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/people"
)

// TestSMPPKey: a key of kind SMPP binds with its password from its networks only, for as long as it and its user are
// valid. It is listed with the others and works for no HTTP request.
func TestSMPPKey(t *testing.T) {
	a := newWorld(t)
	ctx := t.Context()
	user, err := a.people.CreateUser(ctx, people.NewUser{Email: "a@example.com", Name: "A",
		Password: "long enough password"})
	if err != nil {
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		_, err := a.companies.CreateCompany(ctx, tx, companies.NewCompany{OwnerEmail: user.Email, Name: "A"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	networks := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for _, bad := range []struct {
		networks []netip.Prefix
		limits   SMPPLimits
	}{{nil, SMPPLimits{}}, {networks, SMPPLimits{Window: 101}}, {networks, SMPPLimits{Sessions: -1}},
		{networks, SMPPLimits{Alphabet: "ascii"}}} {
		if _, _, err := a.keys.CreateSMPPKey(ctx, user.ID, "bank", bad.networks, bad.limits); !errors.Is(
			err, accounts.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	key, password, err := a.keys.CreateSMPPKey(ctx, user.ID, "bank", networks, SMPPLimits{TPS: 50})
	if err != nil || len(password) != 8 || len(key.SystemID) > 15 ||
		key.SMPPLimits != (SMPPLimits{4, 10, 50, AlphabetGSM7}) {
		t.Fatalf("%+v, %q, %v", key, password, err)
	}
	login := func(systemID, password, address string, want error) {
		t.Helper()
		got, err := a.holders.SMPPLogin(ctx, systemID, password, address)
		if !errors.Is(err, want) || want == nil && (err != nil || got.ID != key.ID || got.TPS != 50) {
			t.Errorf("%s from %s: %+v, %v, want %v", systemID, address, got, err, want)
		}
	}
	login(key.SystemID, password, "192.0.2.7", nil)
	login(key.SystemID, password, "192.0.3.7", ErrNetwork)
	login(key.SystemID, password, "no address", ErrNetwork)
	login(key.SystemID, "wrong", "192.0.3.7", accounts.ErrUnauthenticated)
	login(strings.ToUpper(key.SystemID), password, "192.0.2.7", accounts.ErrUnauthenticated)
	login("", "", "192.0.2.7", accounts.ErrUnauthenticated)
	login("x\x00\xff", "", "192.0.2.7", accounts.ErrUnauthenticated)

	if p, err := a.holders.SMPPHolder(ctx, key.ID); err != nil || p.Company == nil || p.UserID != user.ID {
		t.Errorf("holder %+v, %v", p, err)
	}
	if list, err := a.keys.TokensOf(ctx, user.ID); err != nil || len(list) != 1 || list[0].SystemID != key.SystemID {
		t.Errorf("listed %+v, %v", list, err)
	}
	other, _, err := a.keys.CreateToken(ctx, user.Email, "http", accounts.TokenLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.holders.SMPPHolder(ctx, other.ID); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("a key of the HTTP API binds: %v", err)
	}
	if _, err := a.keys.SetSMPPKey(ctx, other.ID, SMPPChange{}); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("a key of the HTTP API is changed: %v", err)
	}
	if set, err := a.keys.SetSMPPKey(ctx, key.ID,
		SMPPChange{Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.1/32")},
			SMPPLimits: SMPPLimits{Window: 100, Alphabet: AlphabetLatin1}}); err != nil ||
		set.SMPPLimits != (SMPPLimits{4, 100, 50, AlphabetLatin1}) {
		t.Errorf("changed to %+v, %v", set, err)
	}
	login(key.SystemID, password, "192.0.2.7", ErrNetwork)
	if _, err := a.Pool.Exec(context.Background(), `update users set disabled_at = now()`); err != nil {
		t.Fatal(err)
	}
	login(key.SystemID, password, "198.51.100.1", accounts.ErrUnauthenticated)
	if keys, err := a.holders.SMPPKeysOf(ctx, []int64{key.ID}); err != nil || len(keys) != 0 {
		t.Errorf("a disabled user's key may still bind: %+v, %v", keys, err)
	}
	if _, err := a.Pool.Exec(context.Background(), `update users set disabled_at = null`); err != nil {
		t.Fatal(err)
	}
	if err := a.keys.RevokeToken(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	login(key.SystemID, password, "198.51.100.1", accounts.ErrUnauthenticated)
}
