package people

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
)

func TestSignUpLink(t *testing.T) {
	a := newWorld(t)
	token, err := a.signIn.BeginSignUp(t.Context(), NewUser{Email: " Aline@Example.com", Name: " Aline ", Language: "rn"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.signIn.Login(t.Context(), "aline@example.com", ""); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("there is a user before the link was followed: %v", err)
	}
	if l, err := a.signIn.SignUpLink(t.Context(), token); err != nil ||
		l != (Link{Email: "aline@example.com", Name: "Aline", Language: "rn"}) {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := a.signIn.ResetLink(t.Context(), token); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("good for another purpose: %v", err)
	}
	if _, err := a.signIn.FinishSignUp(t.Context(), token, "123456789"); !errors.Is(err, accounts.ErrInvalid) {
		t.Errorf("nine characters: %v", err)
	}
	// Several requests follow it at once: one user is created.
	var group sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		group.Go(func() { _, results[i] = a.signIn.FinishSignUp(t.Context(), token, testPassword) })
	}
	group.Wait()
	made := 0
	for _, err := range results {
		if err == nil {
			made++
		} else if !errors.Is(err, accounts.ErrNotFound) && !errors.Is(err, accounts.ErrExists) {
			t.Error(err)
		}
	}
	if u, err := a.signIn.Login(t.Context(), "aline@example.com", testPassword); made != 1 || err != nil ||
		u.Name != "Aline" || u.Language != "rn" {
		t.Errorf("%d made; %+v, %v", made, u, err)
	}
	if _, err := a.signIn.BeginSignUp(t.Context(), NewUser{Email: "aline@example.com", Name: "A"}); !errors.Is(
		err, accounts.ErrExists) {
		t.Errorf("again: %v", err)
	}
}

// The number of open links to an address is bounded, and the last one works.
func TestLinksAreBounded(t *testing.T) {
	a := newWorld(t)
	var tokens []string
	for i := range maxLinks + 2 {
		token, err := a.signIn.BeginSignUp(t.Context(), NewUser{Email: "aline@example.com", Name: fmt.Sprint("Name ", i)})
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	var open int
	if err := a.Pool.QueryRow(t.Context(), `select count(*) from mail_links`).Scan(&open); err != nil || open != maxLinks {
		t.Errorf("%d links, %v", open, err)
	}
	if _, err := a.signIn.SignUpLink(t.Context(), tokens[0]); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("the oldest: %v", err)
	}
	if _, err := a.signIn.FinishSignUp(t.Context(), tokens[len(tokens)-1], testPassword); err != nil {
		t.Errorf("the last: %v", err)
	}
	if _, err := a.signIn.SignUpLink(t.Context(), tokens[len(tokens)-2]); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("one that was left over: %v", err)
	}
}

// TestLinksAtOnce: of two links to one address, used at once, one works and the other is not found.
func TestLinksAtOnce(t *testing.T) {
	a := newWorld(t)
	for i := range 10 {
		var tokens [2]string
		var errs [2]error
		for n := range tokens {
			var err error
			if tokens[n], err = a.signIn.BeginSignUp(t.Context(),
				NewUser{Email: fmt.Sprintf("aline%d@example.com", i), Name: "Aline"}); err != nil {
				t.Fatal(err)
			}
		}
		var both sync.WaitGroup
		for n := range tokens {
			both.Go(func() {
				errs[n] = pgx.BeginFunc(t.Context(), a.Pool, func(tx pgx.Tx) error {
					_, err := takeLink(t.Context(), tx, linkSignUp, tokens[n])
					return err
				})
			})
		}
		both.Wait()
		if slices.SortFunc(errs[:], func(x, _ error) int {
			return map[bool]int{true: -1, false: 1}[x == nil]
		}); errs[0] != nil || !errors.Is(errs[1], accounts.ErrNotFound) {
			t.Fatalf("%v", errs)
		}
	}
}

func TestReset(t *testing.T) {
	a := newWorld(t)
	u := a.mustUser(t, "aline@example.com")
	session, _ := a.mustOpen(t, u)
	if _, err := a.signIn.BeginReset(t.Context(), "unknown@example.com", "fr"); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("an unknown user: %v", err)
	}
	token, err := a.signIn.BeginReset(t.Context(), "ALINE@example.com", "fr")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.signIn.FinishReset(t.Context(), token, "another password"); err != nil {
		t.Fatal(err)
	}
	a.ended(t, session)
	if _, err := a.signIn.Login(t.Context(), u.Email, testPassword); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("the old password: %v", err)
	}

	// A new password ends open links and the other sessions.
	token, err = a.signIn.BeginReset(t.Context(), u.Email, "fr")
	if err != nil {
		t.Fatal(err)
	}
	here, s := a.mustOpen(t, u)
	there, _ := a.mustOpen(t, u)
	if err := a.signIn.ChangePassword(t.Context(), s, testPassword, "a third password"); !errors.Is(
		err, accounts.ErrUnauthenticated) {
		t.Errorf("with a wrong password: %v", err)
	}
	if err := a.signIn.ChangePassword(t.Context(), s, "another password", "a third password"); err != nil {
		t.Fatal(err)
	}
	a.ended(t, there)
	if _, err := a.sessions.SessionByToken(t.Context(), here, idle); err != nil {
		t.Error(err)
	}
	if _, err := a.signIn.FinishReset(t.Context(), token, testPassword); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("a link from before: %v", err)
	}
}
