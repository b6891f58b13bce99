package people

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/accounts"
	"intumwa/internal/vault"
)

// The vectors of RFC 6238, appendix B, cut to six digits.
func TestTOTP(t *testing.T) {
	key := []byte("12345678901234567890")
	for at, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924",
		2000000000: "279037", 20000000000: "353130"} {
		if got := totp(key, at/totpStep); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
		for _, off := range []int64{-2, -1, 0, 1, 2} {
			if at+off*totpStep < 0 {
				continue
			}
			step, right := matchTOTP(key, " "+want[:3]+" "+want[3:], time.Unix(at+off*totpStep, 0))
			if near := off >= -1 && off <= 1; right != near || right && step != at/totpStep {
				t.Errorf("%s, %d steps off: %d, %v", want, off, step, right)
			}
		}
	}
	for code, want := range map[string]bool{"": false, "28708": false, "2870822": false, "abcdef": false, "２８７０８２": true} {
		if _, right := matchTOTP(key, code, time.Unix(59, 0)); right != want {
			t.Errorf("%q: right is %v", code, right)
		}
	}
}

func (a *world) codeNow(t *testing.T, secret string, steps int64) string {
	t.Helper()
	key, err := base32raw.DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	return totp(key, time.Now().Unix()/totpStep+steps)
}

func TestSecondFactor(t *testing.T) {
	a := newWorld(t)
	a.signIn.vault = vault.New(&[32]byte{1}, "user")
	u := a.mustUser(t, "aline@example.com")
	if err := a.signIn.CheckSecondFactor(t.Context(), u.ID, "000000"); !errors.Is(err, ErrWrongCode) {
		t.Errorf("without one: %v", err)
	}
	secret, err := a.signIn.BeginSecondFactor(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.signIn.BeginSecondFactor(t.Context(), u.ID); err != nil || again != secret {
		t.Errorf("the secret changes before it is confirmed: %v", err)
	}
	var stored string
	if err := a.Pool.QueryRow(t.Context(), `select factor_secret from users where factor_secret is not null`).Scan(
		&stored); err != nil || strings.Contains(stored, secret) || !strings.HasPrefix(stored, vault.Prefix) {
		t.Errorf("stored as %q, %v", stored, err)
	}
	if _, passed, err := a.sessions.OpenSession(t.Context(), u, Browser{}); err != nil || !passed {
		t.Errorf("an unconfirmed one is required: %v", err)
	}
	old, _ := a.mustOpen(t, u)
	here, s := a.mustOpen(t, u)
	if _, err := a.signIn.ConfirmSecondFactor(t.Context(), s, "000000"); !errors.Is(err, ErrWrongCode) {
		t.Errorf("a wrong code: %v", err)
	}
	code := a.codeNow(t, secret, 0)
	recovery, err := a.signIn.ConfirmSecondFactor(t.Context(), s, code)
	if err != nil || len(recovery) != recoveryCodeCount {
		t.Fatal(recovery, err)
	}
	a.ended(t, old)
	if _, err := a.sessions.SessionByToken(t.Context(), here, idle); err != nil {
		t.Errorf("the session that turned it on: %v", err)
	}
	if err := a.signIn.CheckSecondFactor(t.Context(), u.ID, code); !errors.Is(err, ErrWrongCode) {
		t.Errorf("a code counts twice: %v", err)
	}
	if err := a.signIn.CheckSecondFactor(t.Context(), u.ID, a.codeNow(t, secret, 1)); err != nil {
		t.Errorf("the next code: %v", err)
	}
	if _, err := a.signIn.BeginSecondFactor(t.Context(), u.ID); !errors.Is(err, accounts.ErrExists) {
		t.Errorf("the secret is shown again: %v", err)
	}
	if _, passed, err := a.sessions.OpenSession(t.Context(), u, Browser{}); err != nil || passed {
		t.Errorf("it is not required: %v", err)
	}

	// A recovery code works once, for its owner only, even when several requests use it at once.
	other := a.mustUser(t, "bob@example.com")
	if err := a.signIn.CheckSecondFactor(t.Context(), other.ID, recovery[0]); !errors.Is(err, ErrWrongCode) {
		t.Errorf("another's: %v", err)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	right := 0
	for range 8 {
		group.Go(func() {
			if a.signIn.CheckSecondFactor(t.Context(), u.ID, " "+strings.ToUpper(recovery[0])) == nil {
				mu.Lock()
				right++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if f, err := a.signIn.SecondFactorOf(t.Context(), u.ID); right != 1 || err != nil || !f.On ||
		f.Codes != recoveryCodeCount-1 {
		t.Errorf("right %d times, then %+v, %v", right, f, err)
	}
	renewed, err := a.signIn.NewRecoveryCodes(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.signIn.CheckSecondFactor(t.Context(), u.ID, recovery[1]); !errors.Is(err, ErrWrongCode) {
		t.Errorf("an old code: %v", err)
	}
	if err := a.signIn.CheckSecondFactor(t.Context(), u.ID, renewed[1]); err != nil {
		t.Errorf("a new code: %v", err)
	}
	if err := a.signIn.DropSecondFactor(t.Context(), u.ID); err != nil {
		t.Fatal(err)
	}
	if f, err := a.signIn.SecondFactorOf(t.Context(), u.ID); err != nil || f != (SecondFactor{}) {
		t.Errorf("%+v, %v", f, err)
	}
}
