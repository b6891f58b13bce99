package testnumbers

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/otp"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

const (
	one   = sms.Number("+25779000001")
	two   = sms.Number("+25779000002")
	three = sms.Number("+25779000003")
)

// later ages everything that happened so far.
func (a *world) later(t *testing.T, d time.Duration) {
	t.Helper()
	a.Exec(t, `update test_number_codes set created_at = created_at - $1::interval`, d)
}

// start calls StartCheck in a transaction.
func (a *world) start(t *testing.T, r CodeRequest) (code otp.Secret, err error) {
	err = pgx.BeginFunc(t.Context(), a.Pool, func(tx pgx.Tx) (err error) {
		code, err = a.testNumbers.StartCheck(t.Context(), tx, r)
		return err
	})
	if err == nil {
		a.testNumbers.Started(r)
	}
	return code, err
}

func (a *world) mustStart(t *testing.T, user int64, number sms.Number) string {
	t.Helper()
	code, err := a.start(t, CodeRequest{User: user, Number: number})
	if err != nil {
		t.Fatalf("StartCheck(%s): %v", number, err)
	}
	return code.Code(a.testNumbers.opts.Key)
}

func (a *world) mustVerify(t *testing.T, user int64, number sms.Number) {
	t.Helper()
	code := a.mustStart(t, user, number)
	if n, err := a.testNumbers.ConfirmCheck(t.Context(), user, code); err != nil || !n.Verified ||
		n.PhoneNumber != number {
		t.Fatalf("ConfirmCheck(%s): %+v, %v", number, n, err)
	}
}

func other(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}

func TestNumberIsChecked(t *testing.T) {
	a := newWorld(t)
	user := a.User(t, "a@example.com").ID
	if _, err := a.testNumbers.ConfirmCheck(t.Context(), user, "123456"); !errors.Is(err, ErrNoCode) {
		t.Errorf("no code yet: %v", err)
	}
	code := a.mustStart(t, user, one)
	if !regexp.MustCompile(`^[0-9]{6}$`).MatchString(code) {
		t.Fatalf("code %q", code)
	}
	var secret []byte
	if err := a.Pool.QueryRow(t.Context(), `select secret from test_number_codes`).Scan(&secret); err != nil ||
		bytes.Contains(secret, []byte(code)) {
		t.Errorf("the code is stored: %v", err)
	}
	if n, err := a.testNumbers.TestNumberOf(t.Context(), user); err != nil ||
		n != (TestNumber{UserID: user, PhoneNumber: one}) {
		t.Errorf("before the code: %+v, %v", n, err)
	}
	var wrong *WrongCodeError
	if _, err := a.testNumbers.ConfirmCheck(t.Context(), user, other(code)); !errors.As(err, &wrong) ||
		wrong.Left != 4 {
		t.Errorf("a wrong code: %v", err)
	}
	if _, err := on(a.Pool).testNumbers.ConfirmCheck(t.Context(), user, code); err != nil {
		t.Errorf("the code, in another process: %v", err)
	}
	if _, err := a.testNumbers.ConfirmCheck(t.Context(), user, code); !errors.Is(err, ErrNoCode) {
		t.Errorf("the code again: %v", err)
	}
	a.later(t, time.Minute)
	if _, err := a.start(t, CodeRequest{User: user, Number: one}); !errors.Is(err, ErrVerifiedAlready) {
		t.Errorf("the same number again: %v", err)
	}
}

func TestCodeEnds(t *testing.T) {
	a := newWorld(t)
	user := a.User(t, "a@example.com").ID

	code := a.mustStart(t, user, one)
	a.later(t, 10*time.Minute+time.Second)
	if _, err := a.testNumbers.ConfirmCheck(t.Context(), user, code); !errors.Is(err, ErrCodeExpired) {
		t.Errorf("after ten minutes: %v", err)
	}

	code = a.mustStart(t, user, one)
	for i := range 5 {
		var wrong *WrongCodeError
		if _, err := a.testNumbers.ConfirmCheck(t.Context(), user, other(code)); !errors.As(err, &wrong) ||
			wrong.Left != 4-i {
			t.Errorf("wrong try %d: %v", i+1, err)
		}
	}
	if _, err := a.testNumbers.ConfirmCheck(t.Context(), user, code); !errors.Is(err, ErrCodeTries) {
		t.Errorf("after five tries: %v", err)
	}

	a.later(t, time.Minute)
	code = a.mustStart(t, user, one)
	a.later(t, time.Minute)
	next := a.mustStart(t, user, two)
	if code != next {
		if _, err := a.testNumbers.ConfirmCheck(t.Context(), user, code); err == nil {
			t.Error("the code of the number before is good for the new one")
		}
	}
	if n, err := a.testNumbers.ConfirmCheck(t.Context(), user, next); err != nil || n.PhoneNumber != two {
		t.Errorf("the new number's code: %+v, %v", n, err)
	}
}

func TestConcurrentTriesAreCounted(t *testing.T) {
	a := newWorld(t)
	user := a.User(t, "a@example.com").ID
	code := a.mustStart(t, user, one)
	var (
		all   sync.WaitGroup
		tried atomic.Int64
	)
	for range 20 {
		all.Go(func() {
			var wrong *WrongCodeError
			_, err := a.testNumbers.ConfirmCheck(t.Context(), user, other(code))
			switch {
			case errors.As(err, &wrong):
				tried.Add(1)
			case !errors.Is(err, ErrCodeTries):
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if tried.Load() != 5 {
		t.Errorf("%d tries, want 5", tried.Load())
	}
}

func TestCodesAreLimited(t *testing.T) {
	a := newWorld(t)
	user := a.User(t, "a@example.com").ID
	stranger := a.User(t, "b@example.com").ID
	var soon *TooSoonError

	a.mustStart(t, user, one)
	for name, try := range map[string]struct {
		user   int64
		number sms.Number
	}{
		"the same":                 {user, one},
		"another number":           {user, two},
		"another account's number": {stranger, one},
	} {
		if _, err := a.start(t, CodeRequest{User: try.user, Number: try.number}); !errors.As(err, &soon) ||
			soon.After < 50*time.Second || soon.After > time.Minute+time.Second {
			t.Errorf("%s within a minute: %v", name, err)
		}
	}
	for range 4 {
		a.later(t, time.Minute)
		a.mustStart(t, user, one)
	}
	a.later(t, 10*time.Minute)
	for _, u := range []int64{user, stranger} {
		if _, err := a.start(t, CodeRequest{User: u, Number: one}); !errors.As(err, &soon) || soon.After < 45*time.Minute ||
			soon.After > 46*time.Minute+time.Second {
			t.Errorf("a sixth code within the hour: %v (%v)", err, soon)
		}
	}
	a.later(t, 46*time.Minute)
	a.mustStart(t, user, one) // the first of the five is an hour old
}

func TestConcurrentRequestsSendOneCode(t *testing.T) {
	a := newWorld(t)
	var (
		all  sync.WaitGroup
		sent atomic.Int64
	)
	for i := range 8 {
		user := a.User(t, fmt.Sprintf("u%d@example.com", i)).ID
		all.Go(func() {
			var soon *TooSoonError
			_, err := a.start(t, CodeRequest{User: user, Number: one})
			switch {
			case err == nil:
				sent.Add(1)
			case !errors.As(err, &soon):
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if sent.Load() != 1 {
		t.Errorf("%d codes went to one number", sent.Load())
	}
}

func TestReplacements(t *testing.T) {
	a := newWorld(t)
	user := a.User(t, "a@example.com").ID
	_, text := a.mustToken(t, "a@example.com")
	hour := func() { a.later(t, time.Hour) }

	a.mustStart(t, user, three) // mistyped: never verified, so replacing it is free
	hour()
	a.mustVerify(t, user, one)
	for i, number := range []sms.Number{two, one, two} {
		hour()
		code := a.mustStart(t, user, number)
		if p, err := a.holders.Authenticate(t.Context(), text); err != nil || p.TestNumber != "" {
			t.Errorf("replacement %d does not clear the verification: %+v, %v", i+1, p, err)
		}
		if n, err := a.testNumbers.ConfirmCheck(t.Context(), user, code); err != nil || n.Replacements != i+1 {
			t.Fatalf("replacement %d: %+v, %v", i+1, n, err)
		}
		if p, err := a.holders.Authenticate(t.Context(), text); err != nil || p.TestNumber != number {
			t.Errorf("replacement %d: %+v, %v", i+1, p, err)
		}
	}
	hour()
	if _, err := a.start(t, CodeRequest{User: user, Number: three}); !errors.Is(err, ErrReplacements) {
		t.Errorf("a fourth replacement: %v", err)
	}
	if n, err := a.testNumbers.TestNumberOf(t.Context(), user); err != nil || n.PhoneNumber != two || !n.Verified {
		t.Errorf("a refused replacement changed something: %+v, %v", n, err)
	}
	if n, err := a.testNumbers.SetTestNumber(t.Context(), "a@example.com", three, true); err != nil ||
		n.PhoneNumber != three || n.Replacements != 3 {
		t.Errorf("by an operator: %+v, %v", n, err)
	}
	_, err := a.testNumbers.SetTestNumber(t.Context(), "unknown@example.com", one, true)
	testenv.Wants(t, "an unknown owner", err, accounts.ErrNotFound, "unknown@example.com")
}
