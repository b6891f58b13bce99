package billing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// model is a model of the ledger.
type model struct {
	balance  map[int64]int64
	charged  []billing.Debit // admitted and committed
	refunded map[[16]byte]bool
	entries  int
}

var errCrash = errors.New("crash")

// TestLedgerAgainstModel plays random charges, refunds and adjustments, some of which crash before their commit,
// against the model: invariants I1 to I6 are true after each.
func TestLedgerAgainstModel(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	next, company := uint64(0), int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		const companies = 3
		first := company + 1
		company += companies
		model := model{balance: map[int64]int64{}, refunded: map[[16]byte]bool{}}
		for id := first; id < first+companies; id++ {
			if err := pgx.BeginFunc(t.Context(), pool,
				func(tx pgx.Tx) error { return billing.Open(t.Context(), tx, id) }); err != nil {
				rt.Fatal(err)
			}
			model.balance[id] = 0
		}
		anyone := rapid.Int64Range(first, first+companies-1)
		// attempt runs do in a transaction that sometimes crashes.
		attempt := func(rt *rapid.T, do func(ctx context.Context, tx pgx.Tx) error) (committed bool) {
			crash := rapid.IntRange(0, 3).Draw(rt, "crash") == 0
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				if err := do(t.Context(), tx); err != nil {
					return err
				}
				if crash {
					return errCrash
				}
				return nil
			})
			if err != nil && !errors.Is(err, errCrash) {
				rt.Fatal(err)
			}
			return err == nil
		}
		rt.Repeat(map[string]func(*rapid.T){
			"charge": func(rt *rapid.T) {
				debits := make([]billing.Debit, rapid.IntRange(1, 6).Draw(rt, "n"))
				for i := range debits {
					next++
					debits[i] = billing.Debit{CompanyID: rapid.OneOf(anyone, anyone, rapid.Just(int64(0))).Draw(rt, "company"),
						Amount: rapid.Int64Range(-1, 20).Draw(rt, "amount"), Ref: ref(next)}
				}
				all := rapid.Bool().Draw(rt, "all or none")
				if all {
					total := map[int64]int64{}
					payable := true
					for i := range debits {
						d := &debits[i]
						d.Amount = max(1, d.Amount)
						total[d.CompanyID] += d.Amount
						payable = payable && total[d.CompanyID] <= model.balance[d.CompanyID]
					}
					if !payable {
						err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
							_, err := billing.ChargeAll(t.Context(), tx, debits, time.Second)
							return err
						})
						if !postgres.Refused(err) {
							rt.Fatalf("charging more than there is: %v", err)
						}
						return
					}
				}
				var receipts []billing.Charged
				committed := attempt(rt, func(ctx context.Context, tx pgx.Tx) (err error) {
					if all {
						receipts, err = billing.ChargeAll(ctx, tx, debits, 0)
					} else {
						receipts, err = lockAndCharge(ctx, tx, debits, testQuota)
					}
					return err
				})
				have := map[int64]int64{}
				for id, credits := range model.balance {
					have[id] = credits
				}
				for i, d := range debits {
					admitted := d.Amount > 0 && d.Amount <= have[d.CompanyID] // company 0 does not exist
					if admitted {
						have[d.CompanyID] -= d.Amount
						if committed {
							model.charged = append(model.charged, d)
							model.entries++
						}
					}
					if want := (billing.Charged{Admitted: admitted, Remaining: have[d.CompanyID]}); receipts[i] != want {
						rt.Fatalf("debit %d of %v: %v, want %v", i, debits, receipts[i], want)
					}
				}
				if committed {
					model.balance = have
				}
			},
			"refund": func(rt *rapid.T) {
				if len(model.charged) == 0 {
					rt.Skip("nothing was charged")
				}
				refunds := rapid.SliceOfN(rapid.SampledFrom(model.charged), 1, 5).Draw(rt, "refunds")
				var n int
				committed := attempt(rt, func(ctx context.Context, tx pgx.Tx) (err error) {
					n, err = billing.Refund(ctx, tx, refunds)
					return err
				})
				fresh := map[[16]byte]billing.Debit{}
				for _, r := range refunds {
					if !model.refunded[r.Ref] {
						fresh[r.Ref] = r
					}
				}
				if n != len(fresh) {
					rt.Fatalf("%d refunded, want %d", n, len(fresh))
				}
				if committed {
					for id, r := range fresh {
						model.refunded[id] = true
						model.balance[r.CompanyID] += r.Amount
						model.entries++
					}
				}
			},
			"adjust": func(rt *rapid.T) {
				id, amount := anyone.Draw(rt, "company"),
					rapid.Int64Range(-30, 60).Filter(func(n int64) bool { return n != 0 }).Draw(rt, "amount")
				if model.balance[id]+amount < 0 {
					if _, err := adjust(t, pool, id, amount, ""); !errors.Is(err, billing.ErrNegative) {
						rt.Fatalf("adjusting %d by %d: %v", model.balance[id], amount, err)
					}
					return
				}
				if attempt(rt, func(ctx context.Context, tx pgx.Tx) error {
					_, err := billing.Grant(ctx, tx, id, amount, "")
					return err
				}) {
					model.balance[id] += amount
					model.entries++
				}
			},
			"": func(rt *rapid.T) {
				entries := 0
				for id, want := range model.balance {
					var have, sum int64
					var n int
					var chained, one bool
					err := pool.QueryRow(t.Context(), `
						WITH chain AS (
							SELECT *, coalesce(lag(balance_after) OVER (ORDER BY id), 0) AS before FROM ledger WHERE company_id = $1
						)
						SELECT (SELECT credits FROM balances WHERE company_id = $1), coalesce(sum(amount), 0)::bigint, count(*),
							coalesce(bool_and(balance_after = before + amount AND balance_after >= 0), true),
							count(DISTINCT (kind, ref)) FILTER (WHERE ref IS NOT NULL) = count(*) FILTER (WHERE ref IS NOT NULL)
						FROM chain`, id).Scan(&have, &sum, &n, &chained, &one)
					if err != nil {
						rt.Fatal(err)
					}
					if have != want || sum != want || !chained || !one {
						rt.Fatalf("company %d: balance %d, ledger %d, want %d; chained %v, one entry a reference %v", id, have, sum, want,
							chained, one)
					}
					entries += n
				}
				if entries != model.entries {
					rt.Fatalf("%d entries, want %d", entries, model.entries)
				}
			},
		})
	})
	sound(t, l, company)
}
