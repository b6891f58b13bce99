package billing_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"intumwa/billing"
	"intumwa/internal/testenv"
)

// TestSpenders: only sends since the time count, also with gaps in the ids.
func TestSpenders(t *testing.T) {
	pool := testenv.Pool(t)
	ledger := billing.New(pool)
	if list, all, err := ledger.Spenders(t.Context(), time.Now().Add(-time.Hour), 10); err != nil || len(list) != 0 ||
		all != 0 {
		t.Fatalf("of an empty ledger: %v, %d, %v", list, all, err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO balances (company_id) VALUES (1), (2), (3)`); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	rapid.Check(t, func(t *rapid.T) {
		if _, err := pool.Exec(t.Context(), `DO $$ BEGIN SET LOCAL session_replication_role = replica; DELETE
			FROM ledger; END $$`); err != nil {
			t.Fatal(err)
		}
		want, all := map[int64]int64{}, int64(0)
		since, at, id := now.Add(-time.Hour), now.Add(-5*time.Hour), int64(0)
		var ids, companies, amounts []int64
		var times []time.Time
		for range rapid.IntRange(0, 40).Draw(t, "rows") {
			at = at.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "seconds later")) * time.Second)
			id += rapid.Int64Range(1, 1000).Draw(t, "gap")
			company, amount := rapid.Int64Range(1, 3).Draw(t, "company"), rapid.Int64Range(1, 100).Draw(t, "credits")
			ids, companies, amounts, times = append(ids, id), append(companies, company), append(amounts, -amount),
				append(times, at)
			if !at.Before(since) {
				want[company] += amount
				all += amount
			}
		}
		if _, err := pool.Exec(t.Context(), `INSERT INTO ledger (id, company_id, kind, amount, balance_after, ref,
			created_at) OVERRIDING SYSTEM VALUE
			SELECT id, company, 'send', amount, 0, gen_random_uuid(), at FROM unnest($1::bigint[], $2::bigint[], $3::bigint[],
				$4::timestamptz[]) u(id, company, amount, at)`,
			ids, companies, amounts, times); err != nil {
			t.Fatal(err)
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

	// More rows than one page has.
	if _, err := pool.Exec(t.Context(), `INSERT INTO ledger (id, company_id, kind, amount, balance_after, ref,
		created_at) OVERRIDING SYSTEM VALUE
		SELECT 1000000 + n, 2, 'send', -1, 0, gen_random_uuid(), $1::timestamptz + make_interval(mins => n - 600)
			FROM generate_series(1, 1200) n`, now); err != nil {
		t.Fatal(err)
	}
	list, all, err := ledger.Spenders(t.Context(), now, 1)
	if err != nil || all != 601 || len(list) != 1 ||
		list[0] != (billing.Spender{CompanyID: 2, Credits: 601, Requests: 601}) {
		t.Errorf("%v of %d, %v", list, all, err)
	}
}
