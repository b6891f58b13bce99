package messages_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/sms"
)

func named(reference string) func(*messages.Message) {
	return func(m *messages.Message) { m.Reference = reference }
}

// TestReference: a name of the customer's own is kept and found exactly, by its company alone; who has none costs nothing.
func TestReference(t *testing.T) {
	d := newHotStore(t)
	d.pending(300)
	if n := d.count(`SELECT pg_relation_size('messages_client_reference')`); n != 8192 {
		t.Errorf("messages without a reference are in the index: it has %d octets", n)
	}
	if n := d.count(`SELECT count(*) FROM messages WHERE client_reference IS NOT NULL OR send_at IS NOT NULL OR expire_at IS NOT NULL`) +
		d.count(`SELECT count(*) FROM deadlines`) + d.count(`SELECT count(*) FROM scheduled`); n != 0 {
		t.Errorf("%d rows of what was not asked for", n)
	}
	b := batchOf(1, 2)
	ids := d.insert(d.compose(named("facture 42")), d.compose(named("facture 42"), inBatch(b)), d.compose(named("facture 4"), inBatch(b)), d.compose(),
		d.compose(named("facture 42"), func(m *messages.Message) { m.CompanyID = 2 }), d.compose(named("Facture 42")))
	failed := sms.Failed
	stranger := ulid.Make()
	for _, c := range []struct {
		company sms.CompanyID
		filter  messages.Filter
		want    []int64
	}{
		{1, messages.Filter{Reference: "facture 42"}, []int64{ids[1], ids[0]}},
		{2, messages.Filter{Reference: "facture 42"}, ids[4:5]},
		{3, messages.Filter{Reference: "facture 42"}, nil},
		{1, messages.Filter{Reference: "Facture 42"}, ids[5:6]},
		{1, messages.Filter{Reference: "facture"}, nil},
		{1, messages.Filter{Reference: "facture 42", Batch: &b.ULID}, ids[1:2]},
		{1, messages.Filter{Reference: "facture 42", Batch: &stranger}, nil},
		{1, messages.Filter{Reference: "facture 42", Status: &failed}, nil},
		{1, messages.Filter{Reference: "facture 4", Number: "+25761000303"}, ids[2:3]},
	} {
		for _, limit := range []int{1, 10} {
			var got []int64
			for before := int64(0); ; {
				page, next, err := d.List(t.Context(), c.company, c.filter, before, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page {
					if got = append(got, r.ID); r.Reference != c.filter.Reference {
						t.Errorf("%q is found by %q", r.Reference, c.filter.Reference)
					}
				}
				if before = next; next == 0 {
					break
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%d %+v: %v, want %v", c.company, c.filter, got, c.want)
			}
		}
	}
}

// TestReferenceCost: a page of the messages of a reference reads a handful of blocks, however long the history is and
// however rare the reference, or another filter beside it, is. INTUMWA_ROWS says of how many messages the history is (300,000).
func TestReferenceCost(t *testing.T) {
	d := newTestStore(t)
	rows := 300_000
	if text := os.Getenv("INTUMWA_ROWS"); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	// A third have a name: every hundredth the same, the others one of their own.
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier, status, client_reference)
			SELECT gen_random_uuid(), 1 + i % 3, 1, '+25761' || lpad((i % 1000000)::text, 6, '0'), 'DEMO', 'Muraho', 0, 1, false, 'lumitel', 1,
				CASE WHEN i % 100 = 0 THEN 'campaign' WHEN i % 3 = 0 THEN 'order-' || i END FROM generate_series(1, $1) i`, rows)
		return err
	})
	d.exec(`ANALYZE messages`)
	failed := sms.Failed
	for _, c := range []struct {
		name   string
		filter messages.Filter
		blocks int
	}{
		{"one message", messages.Filter{Reference: "order-21"}, 40},
		{"none", messages.Filter{Reference: "order-none"}, 40},
		{"many", messages.Filter{Reference: "campaign"}, 300},
		{"a rare one of many", messages.Filter{Reference: "campaign", Status: &failed}, 12_000},
	} {
		blocks, plan := d.blocks(c.filter)
		t.Logf("%s of %d messages: %d blocks\n%s", c.name, rows, blocks, plan)
		if blocks > c.blocks {
			t.Errorf("%s: %d blocks, at most %d", c.name, blocks, c.blocks)
		}
	}
}

// blocks is how many blocks PostgreSQL looks at for company 1's first page by a filter, and the plans.
func (d *testStore) blocks(f messages.Filter) (blocks int, plans string) {
	d.Helper()
	config := d.pool.Config()
	ran := &recorder{}
	config.ConnConfig.Tracer = ran
	pool, err := pgxpool.NewWithConfig(d.Context(), config)
	if err != nil {
		d.Fatal(err)
	}
	defer pool.Close()
	if _, _, err := messages.New(pool).List(d.Context(), 1, f, 0, 25); err != nil {
		d.Fatal(err)
	}
	for _, s := range ran.statements {
		rows, err := d.pool.Query(d.Context(), `EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) `+s.SQL, s.Args...)
		if err != nil {
			d.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			d.Fatal(err)
		}
		counted := false // the first line with buffers is the whole statement's
		for _, line := range lines {
			plans += "  " + line + "\n"
			if found := touched.FindAllStringSubmatch(line, -1); !counted && strings.Contains(line, "Buffers:") {
				counted = true
				for _, match := range found {
					n, _ := strconv.Atoi(match[1])
					blocks += n
				}
			}
		}
	}
	return blocks, plans
}

var touched = regexp.MustCompile(`(?:hit|read)=(\d+)`)

// recorder keeps the statements that a pool runs.
type recorder struct{ statements []pgx.TraceQueryStartData }

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, s pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(strings.TrimSpace(s.SQL), "SELECT") && strings.Contains(s.SQL, "FROM messages") {
		r.statements = append(r.statements, s)
	}
	return ctx
}
func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
