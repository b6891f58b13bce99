package billing_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing"
	"intumwa/internal/testenv"
)

// testQuota is the segments of each test pool.
const testQuota = 5

func TestMain(m *testing.M) { testenv.Main(m) }

// open creates companies with these credits and returns their ids, from 1.
func open(t testing.TB, pool *pgxpool.Pool, credits ...int64) []int64 {
	t.Helper()
	ids := make([]int64, len(credits))
	for i, have := range credits {
		ids[i] = int64(i + 1)
		inTx(t, pool, func(ctx context.Context, tx pgx.Tx) error {
			if err := billing.Open(ctx, tx, ids[i]); err != nil || have == 0 {
				return err
			}
			_, err := billing.Grant(ctx, tx, ids[i], have, "to begin with")
			return err
		})
	}
	return ids
}

// adjust is Grant in its own transaction.
func adjust(t testing.TB, pool *pgxpool.Pool, company, amount int64, note string) (credits int64, err error) {
	t.Helper()
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		credits, err = billing.Grant(t.Context(), tx, company, amount, note)
		return err
	})
	return credits, err
}

func inTx(t testing.TB, pool *pgxpool.Pool, do func(context.Context, pgx.Tx) error) {
	t.Helper()
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return do(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
}

func charge(t testing.TB, pool *pgxpool.Pool, debits ...billing.Debit) (receipts []billing.Charged) {
	t.Helper()
	inTx(t, pool, func(ctx context.Context, tx pgx.Tx) (err error) {
		receipts, err = lockAndCharge(ctx, tx, debits, testQuota)
		return err
	})
	return receipts
}

func lockAndCharge(ctx context.Context, tx pgx.Tx, debits []billing.Debit, testQuota int) ([]billing.Charged, error) {
	locked, err := billing.Lock(ctx, tx, debits)
	if err != nil {
		return nil, err
	}
	return locked.Charge(ctx, tx, debits, testQuota)
}

func refund(t testing.TB, pool *pgxpool.Pool, refunds ...billing.Debit) (n int) {
	t.Helper()
	inTx(t, pool, func(ctx context.Context, tx pgx.Tx) (err error) {
		n, err = billing.Refund(ctx, tx, refunds)
		return err
	})
	return n
}

// ref is the nth reference.
func ref(n uint64) (id [16]byte) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

func balance(t testing.TB, l *billing.Ledger, company int64) int64 {
	t.Helper()
	credits, err := l.Balance(t.Context(), company)
	if err != nil {
		t.Fatal(err)
	}
	return credits
}

// sound fails the test unless the audit finds this number of companies and no mismatch.
func sound(t testing.TB, l *billing.Ledger, companies int64) {
	t.Helper()
	n, mismatches, err := l.Audit(t.Context())
	if err != nil || n != companies || mismatches != 0 {
		t.Errorf("audit: %d companies, %d mismatches, %v; want %d and none", n, mismatches, err, companies)
	}
}
