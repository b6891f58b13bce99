package billing_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"intumwa/billing"
	"intumwa/internal/testenv"
)

// TestSpenders: who sends most in a time, whatever came before, with gaps in the ids.
func TestSpenders(t *testing.T) {
	pool := testenv.Pool(t)
	ledger := billing.New(pool)
	if list, all, err := ledger.Spenders(t.Context(), time.Now().Add(-time.Hour), 10); err != nil || len(list) != 0 || all != 0 {
		t.Fatalf("of an empty ledger: %v, %d, %v", list, all, err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO balances (company_id) VALUES (1), (2), (3)`); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	rapid.Check(t, func(t *rapid.T) {
		if _, err := pool.Exec(t.Context(), `ALTER TABLE ledger DISABLE TRIGGER ledger_insert_only; DELETE FROM ledger; ALTER TABLE ledger ENABLE TRIGGER ledger_insert_only`); err != nil {
			t.Fatal(err)
		}
		want, all := map[int64]int64{}, int64(0)
		since := now.Add(-time.Hour)
		at := now.Add(-5 * time.Hour)
		for range rapid.IntRange(0, 40).Draw(t, "rows") {
			at = at.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "seconds later")) * time.Second)
			company, amount := int64(rapid.IntRange(1, 3).Draw(t, "company")), int64(rapid.IntRange(1, 100).Draw(t, "credits"))
			if _, err := pool.Exec(t.Context(), `SELECT setval('ledger_id_seq', nextval('ledger_id_seq') + $1)`, rapid.IntRange(0, 1000).Draw(t, "gap")); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), `INSERT INTO ledger (company_id, kind, amount, balance_after, ref, created_at) VALUES ($1, 'send', $2, 0, gen_random_uuid(), $3)`,
				company, -amount, at); err != nil {
				t.Fatal(err)
			}
			if !at.Before(since) {
				want[company] += amount
				all += amount
			}
		}
		list, sum, err := ledger.Spenders(t.Context(), since, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != len(want) || sum != all {
			t.Fatalf("%v of %d, want %v of %d", list, sum, want, all)
		}
		for i, s := range list {
			if s.Credits != want[s.CompanyID] || i > 0 && s.Credits > list[i-1].Credits {
				t.Fatalf("%v, want %v", list, want)
			}
		}
	})
}
