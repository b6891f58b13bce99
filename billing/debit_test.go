package billing_test

import (
	"context"
	"errors"
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

	// One row a debit that was admitted, in their order, each continuing the one before.
	rows, err := pool.Query(t.Context(), `SELECT company_id, amount, balance_after, encode(ref, 'hex') FROM
		(SELECT company_id, amount, balance_after, uuid_send(ref) AS ref, id FROM ledger WHERE kind = 'send') l ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		company, amount, after int64
		ref                    string
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e entry, err error) {
		err = row.Scan(&e.company, &e.amount, &e.after, &e.ref)
		return e, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if wanted := []entry{
		{2, -2, 1, fmt.Sprintf("%x", ref(1))}, {1, -4, 6, fmt.Sprintf("%x", ref(2))},
		{2, -1, 0, fmt.Sprintf("%x", ref(6))}, {1, -6, 0, fmt.Sprintf("%x", ref(7))},
	}; !slices.Equal(entries, wanted) {
		t.Errorf("ledger\n%v, want\n%v", entries, wanted)
	}
}

func TestChargeNothing(t *testing.T) {
	pool := testenv.Pool(t)
	if got := charge(t, pool); len(got) != 0 {
		t.Errorf("receipts for nothing: %v", got)
	}
	if n := refund(t, pool); n != 0 {
		t.Errorf("%d refunds of nothing", n)
	}
}

// TestChargeManyCompanies: one transaction for all of them.
func TestChargeManyCompanies(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	const companies, each = 100, 5
	credits := make([]int64, companies)
	for i := range credits {
		credits[i] = each - int64(i%2) // every other one can pay all but the last
	}
	ids := open(t, pool, credits...)
	var debits []billing.Debit
	for round := range each {
		for i := range ids {
			id := ids[(i*37+round)%companies] // in no order
			debits = append(debits, billing.Debit{CompanyID: id, Amount: 1, Ref: ref(uint64(len(debits) + 1))})
		}
	}
	admitted := 0
	for _, r := range charge(t, pool, debits...) {
		if r.Admitted {
			admitted++
		}
	}
	if want := companies*each - companies/2; admitted != want {
		t.Errorf("%d admitted, want %d", admitted, want)
	}
	for _, id := range ids {
		if have := balance(t, l, id); have != 0 {
			t.Errorf("company %d has %d", id, have)
		}
	}
	sound(t, l, companies)
}

// TestChargeConcurrently: 64 writers, each with its own transactions over
// companies in an order of its own, on balances for half of what they want. No
// deadlock, no credit spent twice, none left over. fault 36
func TestChargeConcurrently(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	const writers, rounds, companies = 64, 10, 3
	const half = writers * rounds / 2
	open(t, pool, half, half, half)
	var admitted [companies]atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for round := range rounds {
				debits := make([]billing.Debit, companies)
				for i := range debits {
					company := (i*(1+w%2) + w + round) % companies
					debits[i] = billing.Debit{CompanyID: int64(company + 1), Amount: 1,
						Ref: ref(uint64((w*rounds+round)*companies + company + 1))}
				}
				var receipts []billing.Receipt
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
					receipts, err = billing.Charge(t.Context(), tx, debits)
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
					if r.Admitted {
						admitted[debits[i].CompanyID-1].Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range admitted {
		if n, left := admitted[i].Load(), balance(t, l, int64(i+1)); n != half || left != 0 {
			t.Errorf("company %d: %d admitted, %d left; want %d and 0", i+1, n, left, half)
		}
	}
	sound(t, l, companies)
}

func TestRefundOnce(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	open(t, pool, 10, 10)
	charge(t, pool, billing.Debit{CompanyID: 1, Amount: 3, Ref: ref(1)}, billing.Debit{CompanyID: 2, Amount: 4, Ref: ref(2)})
	first, second := billing.Debit{CompanyID: 1, Amount: 3, Ref: ref(1)}, billing.Debit{CompanyID: 2, Amount: 4, Ref: ref(2)}
	if n := refund(t, pool, first, first); n != 1 {
		t.Errorf("%d refunded, want 1", n)
	}
	if n := refund(t, pool, first, second, billing.Debit{CompanyID: 9, Amount: 1, Ref: ref(3)}, billing.Debit{CompanyID: 1, Amount: 0, Ref: ref(4)}); n != 1 {
		t.Errorf("%d refunded, want the second only", n)
	}
	if n := refund(t, pool, first, second); n != 0 {
		t.Errorf("%d refunded again", n)
	}
	if a, b := balance(t, l, 1), balance(t, l, 2); a != 10 || b != 10 {
		t.Errorf("balances %d and %d", a, b)
	}
	sound(t, l, 2)
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
				_, err := billing.Charge(t.Context(), tx, []billing.Debit{
					{CompanyID: int64(w%companies) + 1, Amount: 1, Ref: ref(uint64(1000 + 2*w))},
					{CompanyID: int64((w+1)%companies) + 1, Amount: 1, Ref: ref(uint64(1001 + 2*w))},
				})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if refunded.Load() != n {
		t.Errorf("%d refunded, want %d", refunded.Load(), n)
	}
	if total := balance(t, l, 1) + balance(t, l, 2) + balance(t, l, 3); total != 3000-16 {
		t.Errorf("%d credits in all, want %d", total, 3000-16)
	}
	sound(t, l, companies)
}

func TestRolledBackChargeLeavesNothing(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	open(t, pool, 10)
	crash := errors.New("crash")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := billing.Charge(t.Context(), tx, []billing.Debit{{CompanyID: 1, Amount: 3, Ref: ref(1)}}); err != nil {
			return err
		}
		return crash
	})
	if !errors.Is(err, crash) {
		t.Fatal(err)
	}
	if have := balance(t, l, 1); have != 10 {
		t.Errorf("%d credits after a crash", have)
	}
	charge(t, pool, billing.Debit{CompanyID: 1, Amount: 3, Ref: ref(1)})
	sound(t, l, 1)
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
					_, err := billing.Charge(context.WithoutCancel(b.Context()), tx, debits)
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
