package messages_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/sms"
)

// statements records the statements of a pool.
type statements struct {
	mu   sync.Mutex
	list []pgx.TraceQueryStartData
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, one pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, one)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (s *statements) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, one pgx.TraceBatchQueryData) {
	s.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: one.SQL, Args: one.Args})
}

func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// with returns those of the recorded statements that contain a text.
func (s *statements) with(text string) (list []pgx.TraceQueryStartData) {
	for _, one := range s.list {
		if strings.Contains(one.SQL, text) {
			list = append(list, one)
		}
	}
	return list
}

// traced returns stores on a pool whose statements are recorded.
func (d *testStore) traced() (stores, *statements) {
	d.Helper()
	seen := &statements{}
	config := d.pool.Config()
	config.ConnConfig.Tracer = seen
	pool, err := pgxpool.NewWithConfig(d.Context(), config)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(pool.Close)
	return storesOf(pool), seen
}

// claimStatements are the statements of [outbox.Store.Claim].
func (d *testStore) claimStatements() (list []string) {
	d.Helper()
	traced, seen := d.traced()
	if _, err := traced.Claim(d.Context(), 1, carrier, []int64{0}, true); err != nil {
		d.Fatal(err)
	}
	for _, one := range seen.with(`UPDATE outbox o SET claimed_by`) {
		list = append(list, one.SQL)
	}
	if len(list) != 2 {
		d.Fatalf("%d statements claim", len(list))
	}
	return list
}

// explained returns how many pages the statements read, each explained in a transaction that is rolled back.
func (d *testStore) explained(list []pgx.TraceQueryStartData) (pages int) {
	d.Helper()
	for _, one := range list {
		sql := strings.TrimSpace(one.SQL)
		if verb, _, _ := strings.Cut(sql, " "); verb != "SELECT" && verb != "WITH" && verb != "UPDATE" {
			continue
		}
		var text []byte
		tx, err := d.pool.Begin(d.Context())
		if err == nil {
			err = tx.QueryRow(d.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, one.Args...).Scan(&text)
			_ = tx.Rollback(d.Context())
		}
		if err != nil {
			d.Fatalf("%v\n%s", err, sql)
		}
		pages += pagesOf(d, text)
	}
	return pages
}

// pagesOf returns how many pages an explained statement read.
func pagesOf(t testing.TB, text []byte) int {
	t.Helper()
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// TestPages: the pages read by a claim and by a page of a list do not grow with the tables.
func TestPages(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(10, func(m *messages.Message) { m.Reference = "facture 42" })
	more := func(first, n int) { // like the first message, without its reference
		d.exec(`WITH copies AS (
				INSERT INTO messages OVERRIDING SYSTEM VALUE SELECT r.* FROM generate_series($2::bigint, $2::bigint + $3 - 1) n
					JOIN messages m ON m.id = $1
					CROSS JOIN LATERAL jsonb_populate_record(m, jsonb_build_object('id', n, 'ulid', md5(n::text)::uuid,
					'client_reference', NULL)) r
				RETURNING id
			)
			INSERT INTO outbox SELECT r.* FROM copies JOIN outbox o ON o.message_id = $1
				CROSS JOIN LATERAL jsonb_populate_record(o, jsonb_build_object('message_id', copies.id)) r`, ids[0], first, n)
		d.exec(`ANALYZE messages, outbox`)
	}
	traced, seen := d.traced()
	list := func(f lookup.Filter) func() error {
		return func() error { _, _, err := traced.List(t.Context(), 1, f, 0, 25); return err }
	}
	sent := sms.Sent
	calls := map[string]func() error{
		"claim": func() error { _, err := traced.Claim(t.Context(), 1, carrier, ids, true); return err },
		"claim due messages": func() error {
			_, err := traced.ClaimDue(t.Context(), 1, carrier, messages.LaneSingle, 10, 0, true)
			return err
		},
		"list":                list(lookup.Filter{}),
		"list of a reference": list(lookup.Filter{Reference: "facture 42"}),
		"list of a status":    list(lookup.Filter{Status: &sent}),
		"list of a day":       list(lookup.Filter{From: time.Now().Add(-time.Hour)}),
	}
	read := func() map[string]int {
		pages := map[string]int{}
		for name, call := range calls {
			seen.list = nil
			if err := call(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			d.exec(`UPDATE outbox SET claimed_by = NULL WHERE claimed_by IS NOT NULL`)
			pages[name] = d.explained(seen.list)
			d.exec(`UPDATE outbox SET claimed_by = NULL WHERE message_id = ANY($1)`, ids) // no trace of what was rolled back
		}
		return pages
	}
	more(1_000_000, 6_000) // more than a page of a list reads
	before := read()
	more(2_000_000, 24_000)
	for name, pages := range read() {
		if most := before[name] + before[name]/4 + 20; pages > most || before[name] == 0 {
			t.Errorf("%s: %d pages with 30,000 messages, %d with 6,000", name, pages, before[name])
		}
	}
	t.Logf("pages: %v", before)
}
