package billing_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

// TestCap: credits spent before the cap was set count; refused debits do not, and refunds are not subtracted. Each day
// begins anew, even after a clock was wrong.
func TestCap(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	open(t, pool, 100, 100)
	n := uint64(0)
	try := func(amount, most int64) billing.Charged {
		t.Helper()
		n++
		return charge(t, pool, billing.Debit{CompanyID: 1, Amount: amount, Ref: ref(n), Cap: most})[0]
	}
	is := func(what string, got, want billing.Charged) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	is("without a cap", try(6, 0), billing.Charged{Admitted: true, Remaining: 94})
	is("over the cap", try(5, 10), billing.Charged{Remaining: 94, Capped: true, Left: 4})
	is("exactly the cap", try(4, 10), billing.Charged{Admitted: true, Remaining: 90})
	is("a cap that is lower now", try(1, 3), billing.Charged{Remaining: 90, Capped: true})
	is("more than there is", try(91, 95), billing.Charged{Remaining: 90})
	if refund(t, pool, billing.Debit{CompanyID: 1, Amount: 6, Ref: ref(100)}) != 1 {
		t.Error("not refunded")
	}
	is("after a refund", try(1, 10), billing.Charged{Remaining: 96, Capped: true})
	if other := charge(t, pool, billing.Debit{CompanyID: 2, Amount: 10, Ref: ref(200), Cap: 10})[0]; !other.Admitted {
		t.Errorf("another company: %+v", other)
	}

	on := func(days int) {
		t.Helper()
		inTx(t, pool, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE balances
				SET spent = 9, spent_on = ((now() AT TIME ZONE 'UTC') + interval '2 hours')::date + $1::int WHERE company_id = 1`,
				days)
			return err
		})
	}
	today := func(want int64) {
		t.Helper()
		if got, err := l.SpentToday(t.Context(), 1); err != nil || got != want {
			t.Errorf("spent today: %d, %v; want %d", got, err, want)
		}
	}
	on(-1)
	today(0)
	is("the next day", try(10, 10), billing.Charged{Admitted: true, Remaining: 86})
	today(10)
	on(1) // a transaction from after midnight committed before this one got the lock
	is("before midnight, after somebody of the new day", try(2, 10), billing.Charged{Remaining: 86, Capped: true, Left: 1})
	is("what is left of the new day", try(1, 10), billing.Charged{Admitted: true, Remaining: 85})
	is("that is counted for the new day", try(1, 10), billing.Charged{Remaining: 85, Capped: true})
	var ahead int
	if err := pool.QueryRow(t.Context(), `SELECT spent_on - ((now() AT TIME ZONE 'UTC') + interval '2 hours')::date
		FROM balances WHERE company_id = 1`).Scan(&ahead); err != nil || ahead != 1 {
		t.Errorf("counted for day %d, %v", ahead, err)
	}
	on(40) // a clock was wrong
	is("a day that is far ahead", try(10, 10), billing.Charged{Admitted: true, Remaining: 75})
	today(10)
	if got, err := l.SpentToday(t.Context(), sms.CompanyID(99)); err != nil || got != 0 {
		t.Errorf("an unknown company: %d, %v", got, err)
	}
	sound(t, l, 2)
}
