package billing_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing"
	"intumwa/internal/testenv"
)

// hold keeps rows for itself until it is told to let go.
func hold(t testing.TB, pool *pgxpool.Pool, query string) (letGo func()) {
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
	letGo = sync.OnceFunc(func() { _ = tx.Rollback(ctx) })
	t.Cleanup(letGo)
	return letGo
}

// TestTestPoolsInOneOrder: two that spend of the same pools, in opposite
// orders, never wait for each other in a ring; nor do those that give back.
func TestTestPoolsInOneOrder(t *testing.T) {
	pool := testenv.Pool(t)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			users := []int64{1, 2, 3, 4}
			if w%2 == 1 {
				users = []int64{4, 3, 2, 1}
			}
			for range 40 {
				if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					var spends []billing.TestSpend
					var back []billing.TestReturn
					for _, user := range users {
						spends = append(spends, billing.TestSpend{UserID: user, Segments: 1})
						back = append(back, billing.TestReturn{UserID: user, Segments: 1, Ref: ref(uint64(user))})
					}
					if w < 4 {
						_, err := billing.SpendTests(t.Context(), tx, spends, 5)
						return err
					}
					_, err := billing.GiveBack(t.Context(), tx, nil, back)
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var deadlocks int
	if err := pool.QueryRow(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks); err != nil || deadlocks != 0 {
		t.Errorf("%d deadlocks, %v", deadlocks, err)
	}
}

// TestSpendTestsAdmitsInOrder: of several messages of one account each is
// admitted that still goes, and another account's are none of its business.
func TestSpendTestsAdmitsInOrder(t *testing.T) {
	pool := testenv.Pool(t)
	inTx(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		got, err := billing.SpendTests(ctx, tx, []billing.TestSpend{{8, 3}, {7, 2}, {8, 3}, {8, 2}, {7, 0}}, 5)
		want := []billing.TestReceipt{{true, 2}, {true, 3}, {false, 2}, {true, 0}, {false, 3}}
		for i := range want {
			if err != nil || got[i] != want[i] {
				t.Errorf("%d: %+v, %v; want %+v", i, got, err, want[i])
			}
		}
		return err
	})
}

// TestGiveBackWaitsForNobody: who is held by somebody else gets it later, once;
// the others at once.
func TestGiveBackWaitsForNobody(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	open(t, pool, 10, 10)
	charge(t, pool, billing.Debit{CompanyID: 1, Amount: 3, Ref: ref(1)}, billing.Debit{CompanyID: 2, Amount: 4, Ref: ref(2)})
	inTx(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := billing.SpendTests(ctx, tx, []billing.TestSpend{{7, 2}, {8, 3}}, 5)
		return err
	})
	letGo := []func(){hold(t, pool, `SELECT FROM balances WHERE company_id = 1 FOR UPDATE`), hold(t, pool, `SELECT FROM test_pools WHERE user_id = 7 FOR UPDATE`)}

	start := time.Now()
	inTx(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		n, err := billing.GiveBack(ctx, tx,
			[]billing.Debit{{CompanyID: 1, Amount: 3, Ref: ref(1)}, {CompanyID: 2, Amount: 4, Ref: ref(2)}},
			[]billing.TestReturn{{UserID: 7, Segments: 2, Ref: ref(3)}, {UserID: 8, Segments: 3, Ref: ref(4)}})
		if n != 1 {
			t.Errorf("%d refunded at once, want 1", n)
		}
		return err
	})
	if took := time.Since(start); took > 4*time.Second { // the lock timeout is 5 s
		t.Errorf("it waited %s", took)
	}
	state := func(want1, want2 int64, want7, want8 int) {
		t.Helper()
		u7, _ := l.TestUsed(t.Context(), 7)
		u8, err := l.TestUsed(t.Context(), 8)
		if a, b := balance(t, l, 1), balance(t, l, 2); a != want1 || b != want2 || u7 != want7 || u8 != want8 || err != nil {
			t.Errorf("balances %d and %d, pools %d and %d, %v; want %d, %d, %d, %d", a, b, u7, u8, err, want1, want2, want7, want8)
		}
	}
	state(7, 10, 2, 0)
	if n, held, err := l.PayOwed(t.Context()); n != 0 || held != 2 || err != nil {
		t.Errorf("while they are held: %d, %d, %v; want 0, 2", n, held, err)
	}
	for _, each := range letGo {
		each()
	}
	for _, want := range []int{1, 0} { // a second time there is nothing
		if n, held, err := l.PayOwed(t.Context()); n != want || held != 0 || err != nil {
			t.Errorf("PayOwed = %d, %d, %v; want %d, 0", n, held, err, want)
		}
		state(10, 10, 0, 0)
	}
	sound(t, l, 2)
}
