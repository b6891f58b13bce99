package billing

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/testenv"
	"intumwa/sms"
)

// book writes a company's ledger of n rows, one a minute up to now; every tenth is a refund, every hundredth an
// adjustment.
func book(t *testing.T, pool *pgxpool.Pool, company int64, n int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		INSERT INTO ledger (company_id, kind, amount, balance_after, ref, note, created_at)
		SELECT $1, CASE WHEN i % 100 = 0 THEN 'adjustment' WHEN i % 10 = 0 THEN 'refund' ELSE 'send' END,
			CASE WHEN i % 10 = 0 THEN 9 ELSE -1 END, 1000 + CASE WHEN i % 10 = 0 THEN 0 ELSE -(i % 10) END,
			CASE WHEN i % 100 <> 0 THEN gen_random_uuid() END, CASE WHEN i % 100 = 0 THEN 'row ' || i ELSE '' END,
			now() - interval '1 minute' * ($2 - i)
		FROM generate_series(0, $2 - 1) i ORDER BY i`, company, n)
	if err != nil {
		t.Fatal(err)
	}
}

func TestStatement(t *testing.T) {
	pool := testenv.Pool(t)
	l := New(pool)
	const rows = 500
	book(t, pool, 2, 300) // of another company
	book(t, pool, 1, rows)
	book(t, pool, 2, 300)
	now := time.Now()
	for _, try := range []struct {
		name   string
		filter StatementFilter
		want   int
	}{
		{"all", StatementFilter{}, rows},
		{"refunds", StatementFilter{Kind: KindRefund}, 45},
		{"adjustments", StatementFilter{Kind: KindAdjustment}, 5},
		{"the last two hours", StatementFilter{From: now.Add(-120*time.Minute - 30*time.Second)}, 120},
		{"before them", StatementFilter{To: now.Add(-120*time.Minute - 30*time.Second)}, rows - 120},
		{"between", StatementFilter{From: now.Add(-200*time.Minute - 30*time.Second),
			To: now.Add(-100*time.Minute - 30*time.Second)}, 100},
		{"refunds between", StatementFilter{Kind: KindRefund, From: now.Add(-200*time.Minute - 30*time.Second),
			To: now.Add(-100*time.Minute - 30*time.Second)}, 9},
		{"of the future", StatementFilter{From: now.Add(time.Hour)}, 0},
		{"of another kind", StatementFilter{Kind: "gift"}, 0},
	} {
		t.Run(try.name, func(t *testing.T) {
			var paged []Entry
			for before, pages := int64(0), 0; ; pages++ {
				page, next, err := l.Statement(t.Context(), 1, try.filter, before, 37)
				if err != nil || len(page) > 37 || pages > rows {
					t.Fatalf("%d rows, %v", len(page), err)
				}
				if paged = append(paged, page...); next == 0 {
					break
				}
				before = next
			}
			var streamed []Entry
			for e, err := range l.Entries(t.Context(), 1, try.filter, nil) {
				if err != nil {
					t.Fatal(err)
				}
				streamed = append(streamed, e)
			}
			if len(paged) != try.want || len(streamed) != try.want {
				t.Fatalf("%d rows in pages, %d in the stream, want %d", len(paged), len(streamed), try.want)
			}
			for i, e := range streamed {
				p := paged[len(paged)-1-i]
				if p.ID != e.ID || (e.Ref == nil) != (e.Kind == KindAdjustment) || (e.Note != "") != (e.Kind == KindAdjustment) {
					t.Errorf("%+v and %+v", e, p)
				}
				if i > 0 && try.filter.Kind == "" && e.BalanceAfter != streamed[i-1].BalanceAfter+e.Amount {
					t.Errorf("the running balance: %+v after %+v", e, streamed[i-1])
				}
			}
		})
	}
	for _, unknown := range []sms.CompanyID{0, -1, 99} {
		if page, _, err := l.Statement(t.Context(), unknown, StatementFilter{}, 0, 10); err != nil || len(page) != 0 {
			t.Errorf("company %d: %d rows, %v", unknown, len(page), err)
		}
	}
}

// TestStatementsAreStreamed: a long statement is read in pages, stops with its reader, and returns an error of the
// database.
func TestStatementsAreStreamed(t *testing.T) {
	pool := testenv.Pool(t)
	l := New(pool)
	book(t, pool, 1, 3*statementPage+7)
	count, turns := 0, 0
	for _, err := range l.Entries(t.Context(), 1, StatementFilter{},
		func(read func() error) error { turns++; return read() }) {
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	if count != 3*statementPage+7 || turns != 1+4 {
		t.Errorf("%d rows in %d turns", count, turns)
	}
	for _, err := range l.Entries(t.Context(), 1, StatementFilter{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	count = 0
	var failed error
	for _, err := range l.Entries(ctx, 1, StatementFilter{}, nil) {
		if failed = err; err == nil {
			if count++; count == 10 {
				cancel()
			}
		}
	}
	if !errors.Is(failed, context.Canceled) || count != statementPage {
		t.Errorf("%d rows, then %v", count, failed)
	}
}

// TestRareRowsAreReached: rows that match rarely are found, page by page.
func TestRareRowsAreReached(t *testing.T) {
	pool := testenv.Pool(t)
	l := New(pool)
	book(t, pool, 1, 1)
	_, err := pool.Exec(t.Context(), `INSERT INTO ledger (company_id, kind, amount, balance_after, ref)
		SELECT 1, 'send', -1, 5, gen_random_uuid() FROM generate_series(1, $1)`, 2*statementScanned)
	if err != nil {
		t.Fatal(err)
	}
	pages, found := 0, 0
	for before := int64(0); ; {
		page, next, err := l.Statement(t.Context(), 1, StatementFilter{Kind: KindAdjustment}, before, 10)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		if found += len(page); next == 0 {
			break
		}
		before = next
	}
	if pages != 3 || found != 1 {
		t.Errorf("%d found on %d pages", found, pages)
	}
}

// TestRemaining: the credits left by a request are read without the rest of the company's ledger.
func TestRemaining(t *testing.T) {
	pool := testenv.Pool(t)
	l := New(pool)
	for range 10 {
		book(t, pool, 1, 2000)
		book(t, pool, 2, 2000)
	}
	var id [16]byte
	var left int64
	if _, err := pool.Exec(t.Context(), `ANALYZE ledger`); err != nil {
		t.Fatal(err)
	}
	if err := pool.QueryRow(t.Context(), `SELECT ref, balance_after FROM ledger WHERE company_id = 1 AND kind = 'send'
		ORDER BY id DESC LIMIT 1 OFFSET 10`).Scan(&id, &left); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Remaining(t.Context(), 1, id); got != left || err != nil {
		t.Errorf("%d left, %v, want %d", got, err, left)
	}
	var plan []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := pool.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+remaining, 1,
		pgtype.UUID{Bytes: id, Valid: true}).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	if pages := plan[0].Plan.Hit + plan[0].Plan.Read; pages > 20 {
		t.Errorf("%d pages", pages)
	}
}
