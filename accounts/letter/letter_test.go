package letter_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/letter"
	"intumwa/accounts/people"
	"intumwa/internal/testenv"
)

// TestDecisionsAreMailed: each decision writes one letter in the transaction of the change; an unchanged state writes
// none.
func TestDecisionsAreMailed(t *testing.T) {
	a := newWorld(t)
	a.mustUser(t, "a@example.com")
	company := a.Company(t, "a@example.com")
	sender, err := a.senders.CreateSender(t.Context(), company.ID, "ACME", "", false)
	if err != nil {
		t.Fatal(err)
	}
	set := func(change companies.CompanyChange) func(*world) error {
		return func(a *world) error { _, err := a.companies.SetCompany(t.Context(), company.ID, change); return err }
	}
	approve := func(yes bool) func(*world) error {
		return func(a *world) error { _, err := a.senders.SetSender(t.Context(), sender.ID, yes); return err }
	}
	refuse := func(reason string) func(*world) error {
		return func(a *world) error {
			_, err := a.senders.RefuseSender(t.Context(), sender.ID, reason)
			return err
		}
	}
	undone := errors.New("undone")
	for i, step := range []struct {
		do   func(*world) error
		want []string
	}{
		{set(companies.CompanyChange{Approved: new(false), SmartEncoding: new(true)}), nil},
		{set(companies.CompanyChange{Approved: new(true)}), []string{"approval 0"}},
		{set(companies.CompanyChange{Approved: new(true), Verified: new(true)}), []string{"verification 0"}},
		{set(companies.CompanyChange{Approved: new(false), Verified: new(false)}), []string{"approval 0", "verification 0"}},
		{approve(true), []string{fmt.Sprint("sender ", sender.ID)}},
		{approve(true), nil},
		{approve(false), nil},
		{refuse("no"), []string{fmt.Sprint("sender ", sender.ID)}},
		{refuse("no"), nil},
		{refuse("another's name"), []string{fmt.Sprint("sender ", sender.ID)}},
		{func(a *world) error {
			err := pgx.BeginFunc(t.Context(), a.Pool, func(tx pgx.Tx) error {
				return errors.Join(approve(true)(&world{senders: a.senders.In(tx)}), undone)
			})
			if errors.Is(err, undone) {
				return nil
			}
			return err
		}, nil},
	} {
		if err := step.do(a); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		letters, err := letter.Take(t.Context(), a.Pool, time.Minute, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range letters {
			got = append(got, fmt.Sprint(l.Kind, " ", l.Subject))
			if err := letter.Drop(t.Context(), a.Pool, l); err != nil {
				t.Error(err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, step.want) {
			t.Errorf("step %d leaves %v, want %v", i, got, step.want)
		}
	}
}

// TestAccountChangesAreMailed: changes that weaken an account's protection, or that a thief would make, write a letter
// to the user.
func TestAccountChangesAreMailed(t *testing.T) {
	a := newWorld(t)
	a.mustUser(t, "other@example.com")
	u := a.mustUser(t, "a@example.com")
	token, _, err := a.sessions.OpenSession(t.Context(), u, people.Browser{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.sessions.SessionByToken(t.Context(), token, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var was string
	if err := a.Pool.QueryRow(t.Context(), `select password_hash from users where id = $1`, u.ID).Scan(&was); err != nil {
		t.Fatal(err)
	}
	const another = "another password"
	for kind, do := range map[string]func() error{
		letter.Tries: func() error {
			return errors.Join(a.signIn.WarnOfTries(t.Context(), " A@example.com"),
				a.signIn.WarnOfTries(t.Context(), "unknown@example.com"))
		},
		letter.TwoStep: func() error { return a.signIn.DropSecondFactor(t.Context(), u.ID) },
		letter.Key: func() error {
			_, _, err := a.keys.CreateOwnToken(t.Context(), u.ID, "shop", accounts.TokenLimits{})
			return err
		},
		letter.Password: func() error {
			token, err := a.signIn.BeginReset(t.Context(), u.Email, "fr")
			if err == nil {
				_, err = a.signIn.FinishReset(t.Context(), token, another)
			}
			return err
		},
		letter.Password + " ": func() error {
			_, err := a.Pool.Exec(t.Context(), `update users set password_hash = $1`, was)
			if err != nil {
				return err
			}
			return a.signIn.ChangePassword(t.Context(), s, testPassword, another)
		},
	} {
		if err := do(); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		letters, err := letter.Take(t.Context(), a.Pool, time.Minute, 10)
		letters = slices.DeleteFunc(letters, func(l letter.Letter) bool { return l.Subject < 0 }) // to nobody
		if err != nil || len(letters) != 1 || letters[0].Kind != strings.TrimSpace(kind) || letters[0].Company != 0 ||
			letters[0].Subject != u.ID {
			t.Fatalf("%s: %+v, %v", kind, letters, err)
		}
		if err := letter.Drop(t.Context(), a.Pool, letters[0]); err != nil {
			t.Error(err)
		}
	}
}

// TestLetterIsReplaced: a letter that is replaced while the first one is being sent stays, and is due at once.
func TestLetterIsReplaced(t *testing.T) {
	pool := testenv.Pool(t)
	write := func(credits int64) {
		t.Helper()
		if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return letter.Write(t.Context(), tx, letter.Balance, 7, letter.BalanceValues{Credits: credits, Threshold: 50})
		}); err != nil {
			t.Fatal(err)
		}
	}
	take := func(want string) (l letter.Letter) {
		t.Helper()
		letters, err := letter.Take(t.Context(), pool, time.Minute, 10)
		if err != nil || len(letters) != min(1, len(want)) || want != "" && string(letters[0].Values) != want {
			t.Fatalf("%+v, %v; want %q", letters, err, want)
		}
		if want != "" {
			l = letters[0]
		}
		return l
	}
	write(40)
	old := take(`{"credits": 40, "threshold": 50}`)
	take("") // another process has it
	write(30)
	if err := letter.Drop(t.Context(), pool, old); err != nil {
		t.Error(err)
	}
	l := take(`{"credits": 30, "threshold": 50}`)
	if err := letter.Postpone(t.Context(), pool, l, -time.Second); err != nil {
		t.Error(err)
	}
	if l = take(`{"credits": 30, "threshold": 50}`); l.Tries != 2 {
		t.Errorf("%d tries", l.Tries)
	}
	if err := letter.Drop(t.Context(), pool, l); err != nil {
		t.Error(err)
	}
	take("")
}
