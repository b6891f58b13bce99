package testnumbers

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"intumwa/sms"
)

// asks requests a code for the n-th of many users; each has a number in a block of its own.
func (a *world) asks(t *testing.T, n int, change func(*CodeRequest)) error {
	t.Helper()
	email := fmt.Sprintf("u%d@example.com", n)
	a.Exec(t, `insert into users (email, name, password_hash) values ($1, 'x', 'none') on conflict do nothing`, email)
	u, err := a.people.UserByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	r := CodeRequest{User: u.ID, Number: sms.Number(fmt.Sprintf("+25779%02d0001", n)), Network: fmt.Sprint(n)}
	change(&r)
	_, err = a.start(t, r)
	return err
}

// TestFreeCodesAreLimited: the codes that the operator pays for are limited per day: in total, to one network, to one
// block of numbers. A company's own codes do not count, and have a limit of their own.
func TestFreeCodesAreLimited(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*CodeRequest)
		most   int
	}{
		"the installation": {func(*CodeRequest) {}, 30},
		"a network":        {func(r *CodeRequest) { r.Network = "192.0.2.1" }, freeCodesNetwork},
		"a block": {func(r *CodeRequest) {
			r.Number = "+257791200" + r.Number[len("+25779"):len("+2577900")]
		}, freeCodesBlock},
	} {
		t.Run(name, func(t *testing.T) {
			a := newWorld(t)
			a.testNumbers.opts.FreeCodes = 30
			var limit *CodeLimitError
			for n := range c.most {
				if err := a.asks(t, n, c.change); err != nil {
					t.Fatalf("code %d: %v", n+1, err)
				}
				if n == 0 {
					a.later(t, time.Hour)
				}
			}
			if err := a.asks(t, 90, c.change); !errors.As(err, &limit) || !limit.Free || limit.After < 22*time.Hour ||
				limit.After > 23*time.Hour+2*time.Second {
				t.Errorf("one more: %v, %v", err, limit)
			}
			if n := testutil.ToFloat64(a.testNumbers.codes.free); n != float64(c.most) {
				t.Errorf("%v are counted", n)
			}
			if err := a.asks(t, 91, func(r *CodeRequest) { c.change(r); r.Own = true }); err != nil {
				t.Errorf("a company's own: %v", err)
			}
			a.later(t, 23*time.Hour+time.Second)
			if err := a.asks(t, 90, c.change); err != nil {
				t.Errorf("a day after the first: %v", err)
			}
		})
	}
}

// TestOwnCodesAreLimited: a company with credits has a limit too.
func TestOwnCodesAreLimited(t *testing.T) {
	a := newWorld(t)
	u := a.User(t, "owner@example.com")
	company := a.Company(t, u.Email)
	own := func(r *CodeRequest) { r.Company, r.Own = company.ID, true }
	for n := range codesOfCompany {
		a.Exec(t, `insert into users (email, name, password_hash, company_id, role) values ($1, 'x', 'none', $2, 'reader')`,
			fmt.Sprintf("u%d@example.com", n), company.ID)
		if err := a.asks(t, n, own); err != nil {
			t.Fatalf("code %d: %v", n+1, err)
		}
	}
	var limit *CodeLimitError
	if err := a.asks(t, 90, own); !errors.As(err, &limit) || limit.Free || limit.After < 23*time.Hour {
		t.Errorf("one more: %v", err)
	}
}

// TestConcurrentFreeCodes: concurrent requests do not exceed the limit.
func TestConcurrentFreeCodes(t *testing.T) {
	a := newWorld(t)
	a.testNumbers.opts.FreeCodes = 5
	var sent atomic.Int32
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			if a.asks(t, n, func(*CodeRequest) {}) == nil {
				sent.Add(1)
			}
		})
	}
	all.Wait()
	if sent.Load() != 5 {
		t.Errorf("%d codes", sent.Load())
	}
}
