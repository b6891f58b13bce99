package billing_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing"
	"intumwa/internal/testenv"
)

// lockRows locks rows until release is called.
func lockRows(t testing.TB, pool *pgxpool.Pool, query string) (release func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, query); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = tx.Rollback(ctx) })
	t.Cleanup(release)
	return release
}

// TestRefundDoesNotWait: a refund to a locked balance is paid later, once; others at once.
func TestRefundDoesNotWait(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	open(t, pool, 10, 10)
	paid := []billing.Debit{{CompanyID: 1, Amount: 3, Ref: ref(1)}, {CompanyID: 2, Amount: 4, Ref: ref(2)},
		{CompanyID: 1, Amount: 2, Ref: ref(3), Test: true}, {CompanyID: 2, Amount: 3, Ref: ref(4), Test: true}}
	charge(t, pool, paid...)
	release := lockRows(t, pool, `SELECT FROM balances WHERE company_id = 1 FOR UPDATE`)

	if n := refund(t, pool, paid...); n != 1 { // it must not wait for the lock
		t.Errorf("%d refunded at once, want 1", n)
	}
	state := func(want1, want2 int64, wantUsed1, wantUsed2 int) {
		t.Helper()
		u1, _ := l.TestUsed(t.Context(), 1)
		u2, err := l.TestUsed(t.Context(), 2)
		if a, b := balance(t, l, 1), balance(t, l, 2); a != want1 || b != want2 || u1 != wantUsed1 || u2 != wantUsed2 ||
			err != nil {
			t.Errorf("balances %d and %d, pools %d and %d, %v; want %d, %d, %d, %d", a, b, u1, u2, err, want1, want2, wantUsed1,
				wantUsed2)
		}
	}
	state(7, 10, 2, 0)
	if n, locked, err := l.PayOwed(t.Context()); n != 0 || locked != 1 || err != nil {
		t.Errorf("while it is locked: %d, %d, %v; want 0, 1", n, locked, err)
	}
	release()
	for _, want := range []int{1, 0} { // the second call has none left
		if n, locked, err := l.PayOwed(t.Context()); n != want || locked != 0 || err != nil {
			t.Errorf("PayOwed = %d, %d, %v; want %d, 0", n, locked, err, want)
		}
		state(10, 10, 0, 0)
	}
	sound(t, l, 2)
}
