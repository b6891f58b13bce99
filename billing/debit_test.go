package billing_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/internal/testenv"
)

// TestChargeConcurrently: 64 writers charge companies in different orders, with balances, and a cap of one company, for
// half of the debits. There is no deadlock, and each credit and test segment is spent exactly once. fault 36, invariant
// I7
func TestChargeConcurrently(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	const writers, rounds, companies = 64, 10, 3
	const half = writers * rounds / 2
	open(t, pool, half, half, 2*half) // the last has a cap
	var admitted [companies]atomic.Int64
	var tested atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for round := range rounds {
				debits := make([]billing.Debit, companies, companies+1)
				for i := range debits {
					company := (i*(1+w%2) + w + round) % companies
					debits[i] = billing.Debit{CompanyID: int64(company + 1), Amount: 1,
						Ref: ref(uint64((w*rounds+round)*companies + company + 1))}
					if company == 2 {
						debits[i].Cap = half
					}
				}
				debits = append(debits, billing.Debit{CompanyID: 1, Amount: 1, Test: true})
				var receipts []billing.Charged
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
					receipts, err = lockAndCharge(t.Context(), tx, debits, testQuota)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				for i, r := range receipts {
					if r.Remaining < 0 {
						t.Errorf("%d remain", r.Remaining)
					}
					switch {
					case !r.Admitted:
					case debits[i].Test:
						tested.Add(1)
					default:
						admitted[debits[i].CompanyID-1].Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := tested.Load(); n != testQuota {
		t.Errorf("%d test messages admitted, want %d", n, testQuota)
	}
	for i := range admitted {
		want := int64(0)
		if i == 2 {
			want = half
		}
		if n, left := admitted[i].Load(), balance(t, l, int64(i+1)); n != half || left != want {
			t.Errorf("company %d: %d admitted, %d left; want %d and %d", i+1, n, left, half, want)
		}
	}
	sound(t, l, companies)
}

// TestRefundConcurrently: several writers refund the same messages in different orders while others charge.
func TestRefundConcurrently(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	const n, companies = 30, 3
	open(t, pool, 1000, 1000, 1000)
	var debits []billing.Debit
	for i := range uint64(n) {
		debits = append(debits, billing.Debit{CompanyID: int64(i%companies) + 1, Amount: 2, Ref: ref(i + 1)})
	}
	charge(t, pool, debits...)
	backwards := slices.Clone(debits)
	slices.Reverse(backwards)
	var refunded atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			list := debits
			if w%2 == 1 {
				list = backwards
			}
			for part := range slices.Chunk(list, 7) {
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					count, err := billing.Refund(t.Context(), tx, part)
					if err == nil {
						refunded.Add(int64(count))
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				_, err := lockAndCharge(t.Context(), tx, []billing.Debit{
					{CompanyID: int64(w%companies) + 1, Amount: 1, Ref: ref(uint64(1000 + 2*w))},
					{CompanyID: int64((w+1)%companies) + 1, Amount: 1, Ref: ref(uint64(1001 + 2*w))},
				}, 0)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	paid, locked, err := l.PayOwed(t.Context())
	if err != nil || locked != 0 {
		t.Errorf("%d locked, %v", locked, err)
	}
	refunded.Add(int64(paid))
	if refunded.Load() != n {
		t.Errorf("%d refunded, want %d", refunded.Load(), n)
	}
	if total := balance(t, l, 1) + balance(t, l, 2) + balance(t, l, 3); total != 3000-16 {
		t.Errorf("%d credits in all, want %d", total, 3000-16)
	}
	sound(t, l, companies)
}
