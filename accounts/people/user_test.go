package people

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/internal/testenv"
)

func TestCreateUser(t *testing.T) {
	a := newWorld(t)
	u, err := a.people.CreateUser(t.Context(), NewUser{Email: "  Jean@Example.COM ", Name: "Jean", Password: testPassword})
	if err != nil || u.Email != "jean@example.com" || u.Administrator {
		t.Fatalf("got %+v, %v", u, err)
	}
	if got, err := a.signIn.Login(t.Context(), " Jean@example.com", testPassword); err != nil || got != u {
		t.Errorf("the right password: %+v, %v", got, err)
	}
	_, err = a.people.CreateUser(t.Context(), NewUser{Email: "JEAN@example.com", Name: "x", Password: "x"})
	testenv.Wants(t, "a duplicate", err, accounts.ErrExists, "jean@example.com exists already")
	for _, email := range []string{"", "jean", "jean@", "Jean <j@example.com>", "a@b, c@d", strings.Repeat("x", 251) +
		"@b.c"} {
		_, err := a.people.CreateUser(t.Context(), NewUser{Email: email, Name: "x", Password: "x"})
		testenv.Wants(t, email, err, accounts.ErrInvalid, "not an email address")
	}
	_, err = a.people.CreateUser(t.Context(), NewUser{Email: "b@example.com", Name: " ", Password: "x"})
	testenv.Wants(t, "no name", err, accounts.ErrInvalid, "name is empty")
	_, err = a.people.CreateUser(t.Context(), NewUser{Email: "b@example.com", Name: "a\x00b", Password: "x"})
	testenv.Wants(t, "a name of controls", err, accounts.ErrInvalid, "not text")
	_, err = a.people.CreateUser(t.Context(), NewUser{Email: "b@example.com", Name: "x"})
	testenv.Wants(t, "no password", err, accounts.ErrInvalid, "password is empty")
	_, err = a.people.CreateUser(t.Context(), NewUser{Email: "b@example.com", Name: "x",
		Password: strings.Repeat("x", 1025)})
	testenv.Wants(t, "a huge password", err, accounts.ErrInvalid, "longer than")

	if byEmail, err := a.people.UserByEmail(t.Context(), "JEAN@example.com"); err != nil || byEmail != u {
		t.Errorf("UserByEmail: %+v, %v", byEmail, err)
	}
	if byID, err := a.people.UserByID(t.Context(), u.ID); err != nil || byID != u {
		t.Errorf("UserByID: %+v, %v", byID, err)
	}
	_, err = a.people.UserByEmail(t.Context(), "unknown@example.com")
	testenv.Wants(t, "an unknown address", err, accounts.ErrNotFound, "unknown@example.com")
	_, _, err = a.keys.CreateToken(t.Context(), "unknown@example.com", "x", accounts.TokenLimits{})
	testenv.Wants(t, "a token for an unknown address", err, accounts.ErrNotFound, "unknown@example.com")
	_, _, err = a.keys.CreateToken(t.Context(), u.Email, "", accounts.TokenLimits{})
	testenv.Wants(t, "a token without a name", err, accounts.ErrInvalid, "token name is empty")
}

// TestTransactionsDoNotHash: what changes a user in a transaction does not wait for a hash, which a flood of sign-ins
// holds up.
func TestTransactionsDoNotHash(t *testing.T) {
	a := newWorld(t)
	u := a.mustUser(t, "a@example.com")
	n, err := NewUser{Email: "b@example.com", Name: "B", Password: testPassword}.Hashed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range concurrentHashes {
		if err := takeHashingSlot(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer releaseHashingSlot()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := a.people.CreateUser(ctx, n); err != nil {
		t.Error(err)
	}
	if _, _, err := a.people.SetUser(ctx, u.ID, UserChange{Reset: true}); err != nil {
		t.Error(err)
	}
}

func TestLogin(t *testing.T) {
	a := newWorld(t)
	a.mustUser(t, "a@example.com")
	for name, try := range map[string][2]string{
		"wrong password": {"a@example.com", "wrong"},
		"no password":    {"a@example.com", ""},
		"huge password":  {"a@example.com", strings.Repeat("x", 5000)},
		"unknown":        {"b@example.com", testPassword},
	} {
		if got, err := a.signIn.Login(t.Context(), try[0], try[1]); !errors.Is(err, accounts.ErrUnauthenticated) ||
			got != (User{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestPHC(t *testing.T) {
	h := newPHC("secret")
	text := h.String()
	if !strings.HasPrefix(text, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("got %s", text)
	}
	parsed, err := parsePHC(text)
	if err != nil || !parsed.matches("secret") || parsed.matches("Secret") {
		t.Errorf("parsePHC(%s): %v", text, err)
	}
	// Hashes with other parameters stay valid.
	other := phc{memory: 64, time: 1, threads: 2, salt: []byte("saltsalt")}
	other.key = argon2.IDKey([]byte("secret"), other.salt, 1, 64, 2, 16)
	if parsed, err := parsePHC(other.String()); err != nil || !parsed.matches("secret") {
		t.Errorf("parsePHC(%s): %v", other, err)
	}
	for _, bad := range []string{
		"", "secret", "$2y$10$abc", strings.Replace(text, "v=19", "v=16", 1), strings.Replace(text, "p=1", "p=0", 1),
		strings.Replace(text, "m=", "n=", 1), text + "!", text[:strings.LastIndex(text, "$")+1],
	} {
		if _, err := parsePHC(bad); err == nil {
			t.Errorf("parsePHC took %q", bad)
		}
	}
}

// TestSetUser: a change ends the user's sessions; a disabled user cannot sign in; a reset voids password and second
// factor; of two administrators who withdraw each other at once one remains.
func TestSetUser(t *testing.T) {
	a := newWorld(t)
	u, other := a.mustUser(t, "aline@example.com"), a.mustUser(t, "bob@example.com")
	a.Exec(t, `update users set administrator = true`)
	_, bearer, err := a.keys.CreateToken(t.Context(), u.Email, "till", accounts.TokenLimits{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(id int64, change UserChange, want error) {
		t.Helper()
		if _, _, err := a.people.SetUser(t.Context(), id, change); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", change, err, want)
		}
	}
	lets := func(in bool) {
		t.Helper()
		_, login := a.signIn.Login(t.Context(), u.Email, testPassword)
		// as another process, without the cache
		_, token := keys.NewHolders(a.Pool, keys.Options{}).Authenticate(t.Context(), bearer)
		for what, err := range map[string]error{"password": login, "token": token} {
			if in && err != nil || !in && !errors.Is(err, accounts.ErrUnauthenticated) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	session, _ := a.mustOpen(t, u)
	set(u.ID, UserChange{Disabled: new(true)}, nil)
	a.ended(t, session)
	lets(false)
	late, _, err := a.sessions.OpenSession(t.Context(), u, Browser{}) // the password was checked before
	if err != nil {
		t.Fatal(err)
	}
	a.ended(t, late)
	set(other.ID, UserChange{Disabled: new(true)}, ErrLastAdministrator)
	set(other.ID, UserChange{Demote: true}, ErrLastAdministrator)
	set(9999, UserChange{Demote: true}, accounts.ErrNotFound)
	set(u.ID, UserChange{Disabled: new(false)}, nil)
	a.ended(t, late)
	lets(true)

	secret, err := a.signIn.BeginSecondFactor(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	session, s := a.mustOpen(t, u)
	if _, err := a.signIn.ConfirmSecondFactor(t.Context(), s, a.codeNow(t, secret, 0)); err != nil {
		t.Fatal(err)
	}
	set(u.ID, UserChange{Reset: true}, nil)
	a.ended(t, session)
	if f, err := a.signIn.SecondFactorOf(t.Context(), u.ID); err != nil || f.On {
		t.Errorf("the second factor: %+v, %v", f, err)
	}
	if _, err := a.signIn.Login(t.Context(), u.Email, testPassword); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("the old password: %v", err)
	}

	var both sync.WaitGroup
	var withdrawn atomic.Int64
	for _, id := range []int64{u.ID, other.ID} {
		both.Go(func() {
			if _, _, err := a.people.SetUser(t.Context(), id, UserChange{Demote: true}); err == nil {
				withdrawn.Add(1)
			}
		})
	}
	both.Wait()
	if left, err := a.people.Administrators(t.Context()); withdrawn.Load() != 1 || err != nil || len(left) != 1 {
		t.Errorf("%d withdrawn, %+v left, %v", withdrawn.Load(), left, err)
	}
}
