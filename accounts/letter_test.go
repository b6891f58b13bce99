package accounts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/testenv"
)

// TestDecisionsAreMailed: each decision writes one letter in the transaction of the change; an unchanged state writes
// none.
func TestDecisionsAreMailed(t *testing.T) {
	a := newAccounts(t)
	a.mustUser(t, "a@example.com")
	company := a.mustCompany(t, "a@example.com")
	sender := a.mustSender(t, company.ID, "ACME")
	set := func(change CompanyChange) func(*Accounts) error {
		return func(a *Accounts) error { _, err := a.SetCompany(t.Context(), company.ID, change); return err }
	}
	approve := func(yes bool) func(*Accounts) error {
		return func(a *Accounts) error { _, err := a.SetSender(t.Context(), sender.ID, yes); return err }
	}
	refuse := func(reason string) func(*Accounts) error {
		return func(a *Accounts) error { _, err := a.RefuseSender(t.Context(), sender.ID, reason); return err }
	}
	undone := errors.New("undone")
	for i, step := range []struct {
		do   func(*Accounts) error
		want []string
	}{
		{set(CompanyChange{Approved: ptr(false), SmartEncoding: ptr(true)}), nil},
		{set(CompanyChange{Approved: ptr(true)}), []string{"approval 0"}},
		{set(CompanyChange{Approved: ptr(true), Verified: ptr(true)}), []string{"verification 0"}},
		{set(CompanyChange{Approved: ptr(false), Verified: ptr(false)}), []string{"approval 0", "verification 0"}},
		{approve(true), []string{fmt.Sprint("sender ", sender.ID)}},
		{approve(true), nil},
		{approve(false), nil},
		{refuse("no"), []string{fmt.Sprint("sender ", sender.ID)}},
		{refuse("no"), nil},
		{refuse("another's name"), []string{fmt.Sprint("sender ", sender.ID)}},
		{func(a *Accounts) error {
			err := pgx.BeginFunc(t.Context(), a.pool, func(tx pgx.Tx) error {
				return errors.Join(approve(true)(a.In(tx)), undone)
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
		letters, err := a.TakeLetters(t.Context(), time.Minute, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range letters {
			got = append(got, fmt.Sprint(l.Kind, " ", l.Subject))
			if err := a.DropLetter(t.Context(), l); err != nil {
				t.Error(err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, step.want) {
			t.Errorf("step %d leaves %v, want %v", i, got, step.want)
		}
	}
}

// TestAccountChangesAreMailed: changes that weaken an account's protection, or that a thief would make, write a letter to
// the user.
func TestAccountChangesAreMailed(t *testing.T) {
	a := newAccounts(t)
	a.mustUser(t, "other@example.com")
	u := a.mustUser(t, "a@example.com")
	_, s := a.mustOpen(t, u)
	const another = "another password"
	for kind, do := range map[string]func() error{
		LetterTries: func() error {
			return errors.Join(a.WarnOfTries(t.Context(), " A@example.com"), a.WarnOfTries(t.Context(), "unknown@example.com"))
		},
		LetterTwoStep: func() error { return a.DropSecondFactor(t.Context(), u.ID) },
		LetterKey:     func() error { _, _, err := a.CreateOwnToken(t.Context(), u.ID, "shop", TokenLimits{}); return err },
		LetterPassword: func() error {
			token, err := a.BeginReset(t.Context(), u.Email, "fr")
			if err == nil {
				_, err = a.FinishReset(t.Context(), token, another)
			}
			return err
		},
		LetterPassword + " ": func() error {
			a.exec(t, `update users set password_hash = $1`, cheapHash)
			return a.ChangePassword(t.Context(), s, testPassword, another)
		},
	} {
		if err := do(); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		letters, err := a.TakeLetters(t.Context(), time.Minute, 10)
		letters = slices.DeleteFunc(letters, func(l Letter) bool { return l.Subject < 0 }) // to nobody
		if err != nil || len(letters) != 1 || letters[0].Kind != strings.TrimSpace(kind) || letters[0].Company != 0 || letters[0].Subject != u.ID {
			t.Fatalf("%s: %+v, %v", kind, letters, err)
		}
		if err := a.DropLetter(t.Context(), letters[0]); err != nil {
			t.Error(err)
		}
	}
}

// TestLetterIsReplaced: a letter that is replaced while the first one is being sent stays, and is due at once.
func TestLetterIsReplaced(t *testing.T) {
	pool := testenv.Pool(t)
	a := on(pool)
	write := func(credits int64) {
		t.Helper()
		if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return WriteLetter(t.Context(), tx, LetterBalance, 7, BalanceLetter{Credits: credits, Threshold: 50})
		}); err != nil {
			t.Fatal(err)
		}
	}
	take := func(want string) (l Letter) {
		t.Helper()
		letters, err := a.TakeLetters(t.Context(), time.Minute, 10)
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
	if err := a.DropLetter(t.Context(), old); err != nil {
		t.Error(err)
	}
	l := take(`{"credits": 30, "threshold": 50}`)
	if err := a.PostponeLetter(t.Context(), l, -time.Second); err != nil {
		t.Error(err)
	}
	if l = take(`{"credits": 30, "threshold": 50}`); l.Tries != 2 {
		t.Errorf("%d tries", l.Tries)
	}
	if err := a.DropLetter(t.Context(), l); err != nil {
		t.Error(err)
	}
	take("")
}
