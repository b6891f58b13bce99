package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/sms"
)

// asked are the statements that a pool was given.
type asked struct {
	mu         sync.Mutex
	statements []statement
}

type statement struct {
	sql  string
	args []any
}

func (a *asked) note(sql string, args []any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.statements = append(a.statements, statement{sql, args})
}

func (a *asked) take() []statement {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.statements = nil }()
	return a.statements
}

func (a *asked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	a.note(data.SQL, data.Args)
	return ctx
}
func (a *asked) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (a *asked) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, q := range data.Batch.QueuedQueries {
		a.note(q.SQL, q.Arguments)
	}
	return ctx
}
func (a *asked) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (a *asked) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

const (
	manyMessages = 300_000
	manyCompany  = 30 // one of so many of them is of another company
)

// TestManyMessages: with many messages behind them the pages stay small, take few statements, and none of these reads a
// whole table of messages. It reports the times; go test -v shows them.
func TestManyMessages(t *testing.T) {
	w := newWorld(t, nil)
	c, u, company := w.customer("aline", "ISOKO", 1000)
	begin := time.Now()
	conn, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `set statement_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	numbers := strings.NewReplacer("$1", fmt.Sprint(company.ID), "$2", fmt.Sprint(u.ID), "$3::int", fmt.Sprint(manyMessages), "$3", fmt.Sprint(manyMessages), "$4", fmt.Sprint(manyCompany))
	for _, fill := range []string{
		`insert into batches (ulid, company_id, user_id, kind, sender, recipients_count, item_count)
		 select gen_random_uuid(), $1, $2, 'bulk', 'ISOKO', 500, 500 from generate_series(1, $3::int / 1000)`,
		`insert into messages (ulid, company_id, user_id, batch_id, phone_number, sender, body, encoding, segments, test, carrier, created_at, status, sent_at)
		 select gen_random_uuid(), case when n % $4 = 0 then $1 + 1 else $1 end, $2,
			case when n % 1000 < 500 then (select min(id) from batches) + n / 1000 end,
			'+2577' || lpad((n % 1000000)::text, 7, '0'), 'ISOKO', repeat('Ibicuruzwa vyawe birageze. ', 20), 0, 4, false, 'leo',
			now() - make_interval(secs => ($3 - n)), case when n % 50 = 0 then 2 else 1 end, now()
		 from generate_series(1, $3::int) n`,
		`insert into parts (message_id, segment, total, carrier, link, key, submitted_at, state, receipt, receipt_at)
		 select id, 1, 1, 'leo', 'leo-1', id::text, created_at, 1, 'DELIVRD', created_at from messages`,
	} {
		if _, err := conn.Exec(t.Context(), numbers.Replace(fill)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), `vacuum analyze messages, parts, batches`); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d messages in %v", manyMessages, time.Since(begin).Round(time.Millisecond))

	// The look-ups on connections that are listened to, and that plan as those of serve do.
	tracer := &asked{}
	config := w.pool.Config()
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w.d.rooms.Messages = messages.New(pool)

	old, _, err := w.d.rooms.Messages.List(t.Context(), sms.CompanyID(company.ID), messages.Filter{}, 1000, 1)
	if err != nil || len(old) != 1 {
		t.Fatal(old, err)
	}
	var batched pgtype.UUID
	if err := w.pool.QueryRow(t.Context(), `select b.ulid from batches b where id = (select batch_id from messages where id = 2250)`).Scan(&batched); err != nil {
		t.Fatal(err)
	}
	for _, try := range []struct {
		name, path string
		statements int  // at most
		searches   bool // and so goes on for searchFor, with two statements each time
	}{
		{"home", "/", 1, false},
		{"messages", "/messages", 1, false},
		{"messages, far back", "/messages?before=5000", 1, false},
		{"messages, failed", "/messages?status=failed", 2, false},
		{"messages, a day", "/messages?from=" + time.Now().AddDate(0, 0, -1).Format(time.DateOnly) + "&to=" + time.Now().AddDate(0, 0, -1).Format(time.DateOnly), 4, true},
		{"messages, a number of yore", "/messages?q=" + old[0].Number.National(), 3, true},
		{"messages, a number that has none", "/messages?q=69999999", 3, true},
		{"message, by number", fmt.Sprintf("/messages?q=%d", old[0].ID), 1, false},
		{"message", "/messages/" + old[0].ULID.String(), 4, false},
		{"batch", "/batches/" + ulid.ULID(batched.Bytes).String(), 4, false},
		{"compose", "/messages/new", 0, false},
	} {
		tracer.take()
		var times []time.Duration
		var a answer
		for range 5 {
			begin := time.Now()
			a = c.get(try.path)
			times = append(times, time.Since(begin))
		}
		slices.Sort(times)
		if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusSeeOther || len(a.body) > 100_000 {
			t.Errorf("%s: %d, %d octets", try.name, a.StatusCode, len(a.body))
		}
		statements := tracer.take()
		t.Logf("%-34s %6.1f ms (median of five), %3.1f statements, %5d octets", try.name, float64(times[2].Microseconds())/1000, float64(len(statements))/5, len(a.body))
		if len(statements) > 5*try.statements && !try.searches {
			t.Errorf("%s takes %d statements, not %d", try.name, len(statements)/5, try.statements)
		}
		seen := map[string]bool{}
		for _, s := range statements {
			if seen[s.sql] {
				continue
			}
			seen[s.sql] = true
			if plan := explain(t, w.pool, s); strings.Contains(plan, "Seq Scan on messages") || strings.Contains(plan, "Seq Scan on parts") {
				t.Errorf("%s reads a whole table:\n%s\n%s", try.name, s.sql, plan)
			}
		}
	}
}

func explain(t *testing.T, pool *pgxpool.Pool, s statement) string {
	t.Helper()
	rows, err := pool.Query(t.Context(), "explain "+s.sql, s.args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("explaining %s: %v", s.sql, err)
	}
	return strings.Join(lines, "\n")
}
