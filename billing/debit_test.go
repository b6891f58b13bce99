package billing_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/internal/testenv"
)

// TestChargeAdmitsInOrder: first come, first served, each company by itself;
// who asks for too much is passed over and holds up nobody behind him.
func TestChargeAdmitsInOrder(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	open(t, pool, 10, 3, 0)
	got := charge(t, pool,
		billing.Debit{CompanyID: 2, Amount: 2, Ref: ref(1)},
		billing.Debit{CompanyID: 1, Amount: 4, Ref: ref(2)},
		billing.Debit{CompanyID: 2, Amount: 2, Ref: ref(3)}, // 1 left: refused
		billing.Debit{CompanyID: 3, Amount: 1, Ref: ref(4)}, // has nothing
		billing.Debit{CompanyID: 1, Amount: 7, Ref: ref(5)}, // 6 left: refused
		billing.Debit{CompanyID: 2, Amount: 1, Ref: ref(6)}, // the last one
		billing.Debit{CompanyID: 1, Amount: 6, Ref: ref(7)},
		billing.Debit{CompanyID: 9, Amount: 1, Ref: ref(8)}, // no such company
		billing.Debit{CompanyID: 1, Amount: 0, Ref: ref(9)}, // not a debit
		billing.Debit{CompanyID: 1, Amount: -5, Ref: ref(10)},
	)
	yes, no := func(left int64) billing.Receipt { return billing.Receipt{Admitted: true, Remaining: left} }, func(left int64) billing.Receipt { return billing.Receipt{Remaining: left} }
	want := []billing.Receipt{yes(1), yes(6), no(1), no(0), no(6), yes(0), yes(0), no(0), no(0), no(0)}
	if !slices.Equal(got, want) {
		t.Errorf("receipts\n%v, want\n%v", got, want)
	}
	for company, left := range []int64{0, 0, 0} {
		if have := balance(t, l, int64(company+1)); have != left {
			t.Errorf("company %d has %d, want %d", company+1, have, left)
		}
	}
	sound(t, l, 3)
}

// TestChargeConcurrently: 64 writers, each with its own transactions over
// companies in an order of its own, on balances for half of what they want. No
// deadlock, no credit and no test segment spent twice, none left over. fault 36, invariant I7
func TestChargeConcurrently(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	const writers, rounds, companies = 64, 10, 3
	const half = writers * rounds / 2
	open(t, pool, half, half, half)
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
				}
				debits = append(debits, billing.Debit{CompanyID: 1, Amount: 1, Test: true})
				var receipts []billing.Receipt
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
					receipts, err = billing.Charge(t.Context(), tx, debits, testQuota)
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
		if n, left := admitted[i].Load(), balance(t, l, int64(i+1)); n != half || left != 0 {
			t.Errorf("company %d: %d admitted, %d left; want %d and 0", i+1, n, left, half)
		}
	}
	sound(t, l, companies)
}

// TestRefundConcurrently: several refund the same messages, in several orders,
// while others charge.
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
					count, err := billing.GiveBack(t.Context(), tx, part)
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
				_, err := billing.Charge(t.Context(), tx, []billing.Debit{
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
	paid, held, err := l.PayOwed(t.Context())
	if err != nil || held != 0 {
		t.Errorf("%d held, %v", held, err)
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

func BenchmarkCharge(b *testing.B) {
	for _, companies := range []int{1, 100} {
		b.Run(fmt.Sprintf("64 requests of %d companies", companies), func(b *testing.B) {
			pool := testenv.Pool(b)
			credits := make([]int64, companies)
			for i := range credits {
				credits[i] = 1 << 40
			}
			open(b, pool, credits...)
			next := uint64(0)
			for b.Loop() {
				debits := make([]billing.Debit, 64)
				for i := range debits {
					next++
					debits[i] = billing.Debit{CompanyID: int64(int(next)%companies) + 1, Amount: 1, Ref: ref(next)}
				}
				err := pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
					_, err := billing.Charge(context.WithoutCancel(b.Context()), tx, debits, 0)
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(64*b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
