package keys

import (
	"errors"
	"strings"
	"testing"
	"time"

	"intumwa/accounts"
	"intumwa/internal/postgres"
)

func TestParseNetworks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " , ": "", "196.2.8.7": "196.2.8.7/32", "196.2.8.7/24": "196.2.8.0/24",
		"2c0f:1::5/48,196.2.8.7": "2c0f:1::/48 196.2.8.7/32",
		"10.0.0.1 10.0.0.1/32":   "10.0.0.1/32", strings.Repeat("10.0.0.0/8,", 11): "10.0.0.0/8",
		"196.2.8": "!", "196.2.8.0/33": "!", "::ffff:196.2.8.7": "!", "fe80::1%eth0": "!", "fe80::1%eth0/64": "!", "a": "!",
		"196.2.8.0/": "!", "1.1.1.1;2.2.2.2": "!",
		"1.0.0.0/8 2.0.0.0/8 3.0.0.0/8 4.0.0.0/8 5.0.0.0/8 6.0.0.0/8 7.0.0.0/8 8.0.0.0/8 9.0.0.0/8 10.0.0.0/8 " +
			"11.0.0.0/8": "!",
	} {
		networks, err := ParseNetworks(text)
		var got []string
		for _, n := range networks {
			got = append(got, n.String())
		}
		if wrong := errors.Is(err, accounts.ErrInvalid); wrong != (want == "!") || !wrong &&
			(err != nil || strings.Join(got, " ") != want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestTokenNetworks(t *testing.T) {
	t.Parallel()
	networks, err := ParseNetworks("196.2.8.0/24, 2c0f:1::/48, 10.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"196.2.8.0": true, "196.2.8.255": true, "196.2.9.0": false, "::ffff:196.2.8.7": true, "2c0f:1::9": true,
		"2c0f:1::9%eth0": true,
		"2c0f:2::9":      false, "10.0.0.1": true, "10.0.0.2": false, "": false, "@": false,
	} {
		if got := (accounts.TokenLimits{Networks: networks}).From(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
		if !(accounts.TokenLimits{}).From(address) {
			t.Errorf("%q is refused without networks", address)
		}
	}
}

// A token has the limits that it was created with, in lists and requests; without any, it has both scopes.
func TestTokenLimits(t *testing.T) {
	a := newWorld(t)
	u := a.User(t, "a@example.com")
	soon := postgres.Now().Add(time.Hour).Truncate(time.Second)
	networks, _ := ParseNetworks("196.2.8.0/24")
	for _, c := range []struct {
		limits     accounts.TokenLimits
		send, read bool
	}{
		{accounts.TokenLimits{}, true, true},
		{accounts.TokenLimits{Scopes: []string{accounts.ScopeRead, accounts.ScopeSend, accounts.ScopeRead}}, true, true},
		{accounts.TokenLimits{Scopes: []string{accounts.ScopeSend}, ExpiresAt: &soon}, true, false},
		{accounts.TokenLimits{Scopes: []string{accounts.ScopeRead}, Networks: networks}, false, true},
	} {
		made, text, err := a.keys.CreateOwnToken(t.Context(), u.ID, "x", c.limits)
		if err != nil {
			t.Fatal(err)
		}
		p, err := a.holders.Authenticate(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		read, err := a.keys.TokenByID(t.Context(), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []accounts.TokenLimits{p.Token, read.TokenLimits, made.TokenLimits} {
			if got.May(accounts.ScopeSend) != c.send || got.May(accounts.ScopeRead) != c.read ||
				len(got.Networks) != len(c.limits.Networks) ||
				(got.ExpiresAt == nil) != (c.limits.ExpiresAt == nil) || got.ExpiresAt != nil && !got.ExpiresAt.Equal(soon) {
				t.Errorf("%+v: got %+v", c.limits, got)
			}
		}
	}
	for _, wrong := range []accounts.TokenLimits{{Scopes: []string{"admin"}}, {ExpiresAt: new(postgres.Now())}} {
		if _, _, err := a.keys.CreateOwnToken(t.Context(), u.ID, "x", wrong); !errors.Is(err, accounts.ErrInvalid) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// An expired token is refused at its next use, from the cache or from the database.
func TestTokenExpires(t *testing.T) {
	a := newWorld(t)
	u := a.User(t, "a@example.com")
	token, text, err := a.keys.CreateOwnToken(t.Context(), u.ID, "x",
		accounts.TokenLimits{ExpiresAt: new(postgres.Now().Add(time.Hour))})
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.holders.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	cached := a.holders.cache.peek(token.ID)
	cached.principal.Token.ExpiresAt = new(postgres.Now())
	cached.readAt = time.Now().Add(time.Minute) // it stays cached, however slow the machine is
	if _, err := a.holders.Authenticate(t.Context(), text); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("cached: %v", err)
	}
	a.Exec(t, `update api_tokens set expires_at = now()`)
	a.holders.ForgetUser("")
	if _, err := a.holders.Authenticate(t.Context(), text); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("read again: %v", err)
	}
	if _, err := a.holders.Fresh(t.Context(), p); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("fresh: %v", err)
	}
	if a.holders.Recognize(text) {
		t.Error("it is recognized")
	}
}

// Expired tokens never push a valid one out of the list: its owner must be able to revoke it.
func TestExpiredTokensHideNoValidOnes(t *testing.T) {
	a := newWorld(t)
	u := a.User(t, "a@example.com")
	works, _, err := a.keys.CreateOwnToken(t.Context(), u.ID, "x", accounts.TokenLimits{})
	if err != nil {
		t.Fatal(err)
	}
	a.Exec(t, `insert into api_tokens (user_id, name, secret_hash, scopes, expires_at, networks)
		select user_id, name, secret_hash, scopes, now(), networks from api_tokens, generate_series(1, 100)`)
	listed, err := a.keys.TokensOf(t.Context(), u.ID)
	if err != nil || len(listed) != 100 || listed[99].ID != works.ID {
		t.Errorf("%d tokens without the one that works, %v", len(listed), err)
	}
}
