package billing_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

// TestWarnings: concurrent looks report each crossing once; a balance that goes up and down between two looks is
// reported once, and mailed at most once an hour.
func TestWarnings(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	open(t, pool, 100, 100)
	thresholds := func(company sms.CompanyID, set ...int64) {
		t.Helper()
		if err := l.SetThresholds(t.Context(), company, set...); err != nil {
			t.Fatal(err)
		}
	}
	take := func() (all []billing.Warning) {
		t.Helper()
		var mu sync.Mutex
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				var warnings []billing.Warning
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
					warnings, err = billing.TakeWarnings(t.Context(), tx)
					return err
				})
				mu.Lock()
				defer mu.Unlock()
				all = append(all, warnings...)
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		return all
	}
	thresholds(1, 50)
	thresholds(2, 50)
	last := int64(0)
	for i, step := range []struct {
		adjust             []int64 // company 1, before the looks
		threshold, credits int64   // of the warning; 0: there is none
		mail               bool
		then               func()
	}{
		{},
		{adjust: []int64{-50}}, // 50 is not below 50
		{adjust: []int64{-1}, threshold: 50, credits: 49, mail: true},
		{adjust: []int64{1, -1}},
		{},
		{adjust: []int64{100}}, // seen above: a new crossing follows
		{adjust: []int64{-100}, threshold: 50, credits: 49, then: func() {
			if _, err := pool.Exec(t.Context(), `UPDATE balance_warnings SET told_at = now() - $1::interval`,
				2*time.Hour); err != nil {
				t.Fatal(err)
			}
		}},
		{}, // still low, or never was
		{adjust: []int64{100}},
		// no crossing is left to report
		{adjust: []int64{-100}, threshold: 50, credits: 49, mail: true, then: func() { thresholds(1, 45, 20, 45) }},
		{adjust: []int64{-9}, threshold: 45, credits: 40, mail: true},
		{adjust: []int64{-25}, threshold: 20, credits: 15, mail: true},
	} {
		for _, amount := range step.adjust {
			if _, err := adjust(t, pool, 1, amount, ""); err != nil {
				t.Fatal(err)
			}
		}
		switch got := take(); {
		case step.threshold == 0 && len(got) == 0:
		case len(got) != 1 || got[0].Company != 1 || got[0].Threshold != step.threshold || got[0].Credits != step.credits ||
			got[0].Mail != step.mail ||
			got[0].Number == 0 || step.threshold == 50 && got[0].Number <= last || got[0].At.IsZero():
			t.Fatalf("step %d: warned of %+v, want %+v", i, got, step)
		default:
			last = got[0].Number
		}
		if step.then != nil {
			step.then()
		}
	}
	if all, err := l.Thresholds(t.Context(), 1); err != nil || !slices.Equal(all, []int64{45, 20}) {
		t.Error(all, err)
	}
	if err := l.SetThresholds(t.Context(), 1, 1, 2, 3, 4, 5, 6); !errors.Is(err, billing.ErrThresholds) {
		t.Error(err)
	}
	thresholds(1)
	if all, err := l.Thresholds(t.Context(), 1); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}

// TestPeriod: a period's balances are those before its first row and after its last, also when it has no row.
func TestPeriod(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	if _, err := pool.Exec(t.Context(), `INSERT INTO ledger (company_id, kind, amount, balance_after, created_at)
		SELECT 1, 'adjustment', 10, 10 * i, '2026-03-01T12:00:00Z'::timestamptz + make_interval(days => i)
			FROM generate_series(1, 20) i`); err != nil {
		t.Fatal(err)
	}
	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	for name, try := range map[string]struct {
		f                billing.StatementFilter
		opening, closing int64
	}{
		"all":    {billing.StatementFilter{}, 0, 200},
		"middle": {billing.StatementFilter{From: day(5), To: day(8)}, 30, 60},
		"kind":   {billing.StatementFilter{From: day(5), To: day(8), Kind: billing.KindSend}, 30, 60},
		"from":   {billing.StatementFilter{From: day(20)}, 180, 200},
		"to":     {billing.StatementFilter{To: day(3)}, 0, 10},
		"before": {billing.StatementFilter{To: day(1)}, 0, 0},
		"after":  {billing.StatementFilter{From: day(28)}, 200, 200},
		"none":   {billing.StatementFilter{From: day(5).Add(13 * time.Hour), To: day(6)}, 40, 40},
	} {
		opening, closing, err := l.Period(t.Context(), 1, try.f)
		if err != nil || opening != try.opening || closing != try.closing {
			t.Errorf("%s: %d to %d (%v), want %d to %d", name, opening, closing, err, try.opening, try.closing)
		}
	}
	if opening, closing, err := l.Period(t.Context(), 2, billing.StatementFilter{}); err != nil || opening != 0 ||
		closing != 0 {
		t.Error(opening, closing, err)
	}
	var seen []int64
	for after := int64(0); ; {
		page, next, err := l.Sheet(t.Context(), 1, billing.StatementFilter{From: day(5)}, after, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			seen = append(seen, e.BalanceAfter)
		}
		if after = next; next == 0 {
			break
		}
	}
	if len(seen) != 17 || seen[0] != 40 || seen[16] != 200 {
		t.Errorf("sheets have %v", seen)
	}
}
