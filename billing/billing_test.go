package billing_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/internal/testenv"
)

// TestAdjust: an adjustment changes a company's balance by one ledger row and never below zero.
func TestAdjust(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	open(t, pool, 5)
	for _, step := range []struct {
		company, amount int64
		want            int64
		err             error
	}{
		{1, 10, 15, nil},
		{1, -15, 0, nil},
		{1, -1, 0, billing.ErrNegative},
		{1, math.MinInt64, 0, billing.ErrNegative},
		{2, 1, 0, billing.ErrNoBalance},
		{1, math.MaxInt64, math.MaxInt64, nil},
		{1, -math.MaxInt64, 0, nil},
	} {
		got, err := adjust(t, pool, step.company, step.amount, "by hand")
		if got != step.want || !errors.Is(err, step.err) || (err == nil) != (step.err == nil) {
			t.Errorf("adjusting company %d by %d: %d, %v; want %d, %v", step.company, step.amount, got, err, step.want, step.err)
		}
	}
	if _, err := adjust(t, pool, 1, 0, ""); err == nil {
		t.Error("an adjustment of nothing was taken")
	}
	if _, err := adjust(t, pool, 1, 1, ""); err != nil {
		t.Error(err)
	}
	if _, err := adjust(t, pool, 1, math.MaxInt64, "too much"); err == nil {
		t.Error("a balance beyond the largest one was taken")
	}
	if _, err := l.Balance(t.Context(), 2); !errors.Is(err, billing.ErrNoBalance) {
		t.Errorf("the balance of an unknown company: %v", err)
	}
	if have := balance(t, l, 1); have != 1 {
		t.Errorf("%d credits, want 1", have)
	}
	sound(t, l, 1)
	page, _, err := l.Statement(t.Context(), 1, billing.StatementFilter{}, 0, 10)
	if err != nil || len(page) != 6 || page[4].Amount != 10 || page[4].BalanceAfter != 15 || page[4].Note != "by hand" {
		t.Errorf("the statement: %+v, %v", page, err)
	}
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return billing.Open(t.Context(), tx, 1)
	}); err == nil {
		t.Error("a second balance was opened")
	}
}

// TestInsertOnly: ledger rows cannot be changed. invariant I3
func TestInsertOnly(t *testing.T) {
	pool := testenv.Pool(t)
	open(t, pool, 5)
	for _, statement := range []string{
		`UPDATE ledger SET amount = 6`, `UPDATE ledger SET note = 'x' WHERE id = 0`,
		`DELETE FROM ledger`, `TRUNCATE ledger`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "insert only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	for _, statement := range []string{
		`UPDATE balances SET credits = -1`,
		`INSERT INTO ledger (company_id, kind, amount, balance_after) VALUES (1, 'adjustment', -6, -1)`,
		`INSERT INTO ledger (company_id, kind, amount, balance_after) VALUES (1, 'adjustment', 0, 5)`,
		`INSERT INTO ledger (company_id, kind, amount, balance_after) VALUES (1, 'gift', 1, 6)`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err == nil {
			t.Errorf("taken: %s", statement)
		}
	}
	sound(t, billing.New(pool), 1)
}

// TestAuditFinds: the audit finds each kind of mismatch.
func TestAuditFinds(t *testing.T) {
	for _, fault := range []struct {
		name, statement string
		companies       int64
	}{
		{"a balance raised", `UPDATE balances SET credits = credits + 1 WHERE company_id = 2`, 3},
		{"a balance gone", `DELETE FROM balances WHERE company_id = 2`, 3},
		{"a balance without a ledger", `INSERT INTO balances VALUES (4, 1)`, 4},
		{"a ledger without a balance", `INSERT INTO ledger (company_id, kind, amount, balance_after)
			VALUES (4, 'adjustment', 1, 1)`, 4},
		{"an entry without its balance", `INSERT INTO ledger (company_id, kind, amount, balance_after)
			VALUES (2, 'adjustment', 1, 6)`, 3},
		{"a gap in the chain", `WITH a AS (UPDATE balances SET credits = 6 WHERE company_id = 2)
			INSERT INTO ledger (company_id, kind, amount, balance_after) VALUES (2, 'adjustment', 1, 7)`, 3},
	} {
		t.Run(fault.name, func(t *testing.T) {
			pool := testenv.Pool(t)
			l := billing.New(pool)
			open(t, pool, 5, 5, 0)
			sound(t, l, 3)
			if _, err := pool.Exec(t.Context(), fault.statement); err != nil {
				t.Fatal(err)
			}
			companies, mismatches, err := l.Audit(t.Context())
			if err != nil || companies != fault.companies || mismatches != 1 {
				t.Errorf("%d companies, %d mismatches, %v; want %d and 1", companies, mismatches, err, fault.companies)
			}
		})
	}
}

// TestTestPool: a test message takes segments of its company's pool and no credits; a failure returns them.
func TestTestPool(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	open(t, pool, 10, 0)
	spend := func(company, segments, wantLeft int64, wantAdmitted bool) {
		t.Helper()
		got := charge(t, pool, billing.Debit{CompanyID: company, Amount: segments, Ref: ref(uint64(time.Now().UnixNano())),
			Test: true})
		if want := (billing.Charged{Admitted: wantAdmitted, Remaining: wantLeft}); got[0] != want {
			t.Errorf("spending %d: %+v; want %+v", segments, got[0], want)
		}
	}
	used := func(want int) {
		t.Helper()
		if got, err := l.TestUsed(t.Context(), 1); err != nil || got != want {
			t.Errorf("%d used, %v; want %d", got, err, want)
		}
	}
	refund := func(segments int64) int {
		return refund(t, pool, billing.Debit{CompanyID: 1, Amount: segments, Ref: ref(1), Test: true})
	}
	used(0)
	spend(1, 3, 2, true)
	spend(1, 3, 2, false)
	spend(2, 1, 4, true)
	spend(9, 1, 0, false) // no such company
	spend(1, 2, 0, true)
	spend(1, 1, 0, false)
	used(5)
	if n := refund(3); n != 0 {
		t.Errorf("%d messages refunded in credits", n)
	}
	used(2)
	spend(1, 3, 0, true)
	refund(9)
	used(0)
	// A lowered quota leaves 0, never less.
	spend(1, 5, 0, true)
	inTx(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		got, err := lockAndCharge(ctx, tx, []billing.Debit{{CompanyID: 1, Amount: 1, Test: true}}, 2)
		if err != nil || got[0] != (billing.Charged{}) {
			t.Errorf("past a lowered quota: %+v, %v", got, err)
		}
		return err
	})
	if have := balance(t, l, 1); have != 10 {
		t.Errorf("%d credits, want all 10", have)
	}
	sound(t, l, 2)
}
