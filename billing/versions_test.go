package billing_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestChargeBesideSnapshot: what a charge costs does not grow with the versions of
// a balance that a held snapshot keeps.
func TestChargeBesideSnapshot(t *testing.T) {
	pool, err := postgres.Open(t.Context(), testenv.Database(t), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	open(t, pool, 1_000_000, 10)
	snapshot, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = snapshot.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := snapshot.Exec(t.Context(), `SELECT set_config('idle_in_transaction_session_timeout', '0', true), count(*) FROM balances`); err != nil {
		t.Fatal(err)
	}
	// pages that a charge's statements look at in the table of balances
	pages := func() (sum int) {
		t.Helper()
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		count := func() (n int) {
			if _, err := conn.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
				t.Fatal(err)
			}
			if err := conn.QueryRow(t.Context(), `SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = 'balances'`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := count()
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := billing.Charge(t.Context(), tx, []billing.Debit{{CompanyID: 1, Amount: 1, Ref: ref(uint64(time.Now().UnixNano()))}}, 0); err != nil || !got[0].Admitted {
			t.Fatal(got, err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		return count() - before
	}
	pages()
	few := pages()
	for range 20 { // each well within the time of a statement
		if _, err := pool.Exec(t.Context(), `DO $$ BEGIN FOR i IN 1..1000 LOOP UPDATE balances SET credits = credits WHERE company_id = 1; END LOOP; END $$`); err != nil {
			t.Fatal(err)
		}
	}
	many := pages()
	t.Logf("FIGURE pages of balances a charge: %d, behind 20,000 versions %d", few, many)
	if many > few+4 {
		t.Errorf("a charge looks at %d pages of balances, at %d before 20,000 others", many, few)
	}
	if got := charge(t, pool, billing.Debit{CompanyID: 2, Amount: 10, Ref: ref(2)}, billing.Debit{CompanyID: 1, Amount: 1, Ref: ref(3)}); !got[0].Admitted || got[0].Remaining != 0 || !got[1].Admitted {
		t.Errorf("%+v", got)
	}
}
