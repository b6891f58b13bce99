package dashboard

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/contacts"
	"intumwa/inbound/handsets"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/numberfilter"
	"intumwa/messages/statistics"
	"intumwa/sms"
)

// executed records the statements of a pool.
type executed struct {
	mu         sync.Mutex
	statements []statement
}

type statement struct {
	sql  string
	args []any
}

// note adds a statement, except begin and commit.
func (a *executed) note(sql string, args []any) {
	switch first, _, _ := strings.Cut(strings.ToLower(sql), " "); first {
	case "begin", "commit", "rollback":
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.statements = append(a.statements, statement{sql, args})
}

func (a *executed) take() []statement {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.statements = nil }()
	return a.statements
}

func (a *executed) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	a.note(data.SQL, data.Args)
	return ctx
}
func (a *executed) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (a *executed) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, q := range data.Batch.QueuedQueries {
		a.note(q.SQL, q.Arguments)
	}
	return ctx
}
func (a *executed) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (a *executed) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// passing matches a plan that reads ranges of all messages for those of one company.
var passing = regexp.MustCompile(
	`messages_pkey on messages[^\n]*\n(\s+Index Cond: [^\n]*id [<>][^\n]*\n)?\s+Filter: [^\n]*company_id = `)

const manyCompany = 30 // one in so many messages belongs to another company

// TestManyMessages: each page stays small, takes few statements, and scans no table that grows with the messages. The
// short form disables sequential scans where an index exists; the long one has 300,000 messages and lets the planner
// choose.
func TestManyMessages(t *testing.T) {
	manyMessages := 6_000
	if testenv.Thorough() {
		manyMessages = 300_000
	}
	w := newWorld(t, nil)
	c, u, company := w.customer("aline", "ISOKO", 1000)
	conn, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `set statement_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	blanks := strings.NewReplacer("$company", fmt.Sprint(company.ID), "$user", fmt.Sprint(u.ID), "$all",
		fmt.Sprint(manyMessages), "$other", fmt.Sprint(manyCompany))
	for _, fill := range []string{
		`insert into batches (ulid, company_id, user_id, kind, sender, recipients_count, item_count)
		 select gen_random_uuid(), $company, $user, 'bulk', 'ISOKO', 500, 500 from generate_series(1, $all / 1000)`,
		`insert into messages (ulid, company_id, user_id, batch_id, phone_number, sender, body, encoding, segments, test,
			carrier, created_at, status, sent_at)
		 select gen_random_uuid(), case when n % $other = 0 then $company + 1 else $company end, $user,
			case when n % 1000 < 500 then (select min(id) from batches) + n / 1000 end,
			'+2577' || 5 + n / 1000000 % 5 || lpad((n % 1000000)::text, 6, '0'), 'ISOKO', repeat('Ibicuruzwa vyawe birageze. ',
			20), 0, 4, false, 'leo',
			now() - make_interval(secs => ($all - n)), case when n % 50 = 0 then 2 else 1 end, now()
		 from generate_series(1, $all) n`,
		`insert into segments (message_id, segment, total, carrier, link, key, submitted_at, state, receipt, receipt_at)
		 select id, 1, 1, 'leo', 'leo-1', id::text, created_at, 1, 'DELIVRD', created_at from messages`,
		`insert into webhook_endpoints (company_id, url, secret, active) values ($company, 'https://isoko.example/hook',
			'whsec_x', true)`,
		`insert into webhook_deliveries (company_id, id, at, phone_number, delivered, due, tries, given_up_at, attempts)
		 select company_id, id * 8, created_at, phone_number, ok, case when not ok then 'infinity'::timestamptz end, case
			when ok then 0 else 1 end,
			case when not ok then created_at end,
			json_build_array(json_build_object('at', created_at, 'ms', 40, 'status', case when ok then 200
			else 500 end, 'result', case when ok then '2xx' else '5xx' end))
		 from (select *, id % 500 <> 0 as ok from messages where company_id = $company order by id) m`,
		`insert into ledger (company_id, kind, amount, balance_after, ref, created_at)
		 select $company, 'send', -1, 2000000000 - n, gen_random_uuid(), now() - make_interval(secs => ($all - n))
			from generate_series(1, $all) n`,
		`update balances set credits = 2000000000 - $all where company_id = $company`,
		`insert into receipts (carrier, link, key, carrier_id, number, state, error, outcome)
		 select 'leo', 'leo-1', 'stray' || n, 'stray' || n, '25771234567', 'DELIVRD', '', 'unmatched'
			from generate_series(1, $all / 100) n`,
		`insert into inbound (carrier, link, source, destination, data_coding, esm_class, body, octets)
		 select 'leo', 'leo-1', '25771234567', '8080', 0, 0, 'STOP', '' from generate_series(1, $all / 100) n`,
		`insert into inbound_messages (id, company_id, received_at, carrier, source, destination, body, parts)
		 select nextval('messages_id_seq'), case when n % $other = 0 then $company + 1
			else $company end, now() - make_interval(secs => ($all - n)), 'leo',
			'+25771' || lpad((n % 1000000)::text, 6, '0'), '8080', 'Yego', 1 from generate_series(1, $all / 10) n`,
		`insert into opt_outs (company_id, phone_number, sender, source)
		 select case when n % $other = 0 then $company + 1 else $company end, '+2577' || lpad(n::text, 7, '0'), case
			when n % 2 = 0 then 'ISOKO' else '' end, 'handset'
		 from generate_series(1, $all) n`,
		`insert into audit_log (actor, act, subject, company_id, after) select 'user 1', 'credits.add', 'company 1', 1,
			'{"credits": 5}' from generate_series(1, $all / 100) n`,
	} {
		if _, err := conn.Exec(t.Context(), blanks.Replace(fill)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), `vacuum analyze`); err != nil {
		t.Fatal(err)
	}
	filters := numberfilter.New(w.pool)
	if err := statistics.New(w.pool).TallyNow(t.Context(), time.Minute); err != nil { // like the background
		t.Fatal(err)
	}
	for more := true; more; {
		if more, err = filters.FilterNumbers(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// The background work may hold the lock.
	w.until("the old messages are noted by number", func() bool {
		if _, err := filters.FilterNumbers(t.Context()); err != nil {
			t.Fatal(err)
		}
		var noted, all int64
		if err := w.pool.QueryRow(t.Context(), `select (select count(*) from number_filters), (select max(id) - min(id)
			from messages) / 10000`).Scan(&noted, &all); err != nil {
			t.Fatal(err)
		}
		return noted >= all-1
	})
	administrator := newClient(w)
	administrator.inside("root@example.com")

	// Connections with a tracer that plan like those of serve.
	tracer := &executed{}
	config := w.pool.Config()
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	deps := &w.d.deps
	deps.Messages, deps.Lookup, deps.Statistics = messages.New(pool), lookup.New(pool), statistics.New(pool)
	deps.Pool, deps.Statements, deps.Handsets = pool, billing.New(pool), handsets.New(pool)
	deps.Contacts = contacts.New(pool)
	w.d.wire()

	old, _, err := w.d.deps.Lookup.List(t.Context(), sms.CompanyID(company.ID), lookup.Filter{}, 1000, 1)
	if err != nil || len(old) != 1 {
		t.Fatal(old, err)
	}
	var batched pgtype.UUID
	if err := w.pool.QueryRow(t.Context(), `select b.ulid from batches b where id = (select batch_id from messages
		where id = 2250)`).Scan(&batched); err != nil {
		t.Fatal(err)
	}
	day := "from=" + time.Now().AddDate(0, 0, -1).Format(time.DateOnly) + "&to=" + time.Now().AddDate(0, 0, -1).Format(
		time.DateOnly)
	for _, try := range []struct {
		name, path string
		statements int  // maximum
		searches   bool // and continues for searchFor, with more statements
	}{
		{"home", "/", 4, false},
		{"messages", "/messages", 1, false},
		{"messages, far back", "/messages?before=5000", 1, false},
		{"messages, failed", "/messages?status=failed", 2, false},
		{"messages, a day", "/messages?" + day, 4, true},
		{"messages, a number of yore", "/messages?q=" + old[0].Number.National(), 3, true},
		{"messages, a number that has none", "/messages?q=69999999", 3, true},
		{"message, by number", fmt.Sprintf("/messages?q=%d", old[0].ID), 1, false},
		{"message", "/messages/" + old[0].ULID.String(), 5, false},
		{"batch", "/batches/" + ulid.ULID(batched.Bytes).String(), 4, false},
		{"compose", "/messages/new", 0, false},
		{"campaigns", "/campaigns", 3, false},
		{"charts", "/charts?days=90", 3, false},
		{"quality", "/quality", 3, false},
		{"quality, by month", "/quality?from=2025-01-01&to=2027-01-01&kind=batch&cost_center=IT", 3, false},
		{"statement", "/statement", 10, false},
		{"statement, a day", "/statement?" + day, 12, false},
		{"statement, refunds", "/statement?kind=refund", 10, true},
		{"statement, on paper", "/statement/print?" + day, 8, false},
		{"statement of a month", "/statement/month", 16, false},
		{"keys", "/keys", 3, false},
		{"senders", "/senders", 4, false},
		{"deliveries", "/deliveries", 4, false},
		{"deliveries, failed", "/deliveries?state=failed", 4, false},
		{"deliveries, a day", "/deliveries?" + day, 6, false},
		{"company", "/company", 3, false},
		{"received", "/received", 2, false},
		{"received, a day", "/received?" + day, 2, false},
		{"received, a number that has none", "/received?number=69999999", 2, false},
		{"opt-outs", "/opt-outs", 3, false},
		{"opt-outs, far back", "/opt-outs?before=5000", 3, false},
		{"opt-outs, a number", "/opt-outs?q=70000001", 3, false},
		{"opt-outs, a sender ID", "/opt-outs?of=isoko", 4, true},
		{"conversations", "/conversations", 4, false},
		{"conversations, a number", "/conversations?q=75000123", 4, false},
		{"conversation", "/conversations/with?number=%2B25775000123", 8, false},
		{"contacts", "/contacts", 4, false},
		{"orders", "/orders", 4, false},
		{"verifications", "/verifications", 5, false},
		{"test number", "/test-number", 3, false},
		{"account", "/account", 4, false},
		{"administration, waiting", "/admin", 4, false},
		{"administration, sender IDs", "/admin/senders", 4, false},
		{"administration, companies", "/admin/companies", 4, false},
		{"administration, company", fmt.Sprintf("/admin/companies/%d", company.ID), 16, false},
		{"administration, links", "/admin/links", 4, false},
		{"administration, a number of yore", "/admin/search?q=" + old[0].Number.National(), 30, false},
		{"administration, a number that has none", "/admin/search?q=69999999", 30, false},
		{"administration, message", "/admin/messages/" + old[0].ULID.String(), 8, false},
		{"administration, money", "/admin/money", 12, false},
		{"administration, orders", "/admin/orders", 4, false},
		{"administration, invoices", "/admin/invoices", 4, false},
		{"administration, a company's month", fmt.Sprintf("/admin/companies/%d/month", company.ID), 20, false},
		{"administration, quality", "/admin/quality", 4, false},
		{"administration, quality of a company", fmt.Sprintf("/admin/quality?company=%d", company.ID), 5, false},
		{"administration, verifications", "/admin/verifications", 5, false},
		{"administration, receipts", "/admin/receipts", 4, false},
		{"administration, handsets", "/admin/inbound", 4, false},
		{"administration, record", "/admin/acts", 4, false},
		{"administration, record of a company", "/admin/acts?company=999", 4, false},
	} {
		c := c
		if strings.HasPrefix(try.path, "/admin") {
			c = administrator
		}
		tracer.take()
		a := c.get(try.path)
		if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusSeeOther || len(a.body) > 110_000 {
			t.Errorf("%s: %d, %d bytes", try.name, a.StatusCode, len(a.body))
		}
		wants := map[string]string{"a number that has none": "Nothing found", "a number of yore": old[0].ULID.String()}
		if _, what, _ := strings.Cut(try.name, ", "); wants[what] != "" { // at once, or after a click on a busy machine
			found := false
			for clicks := 0; !found && clicks < 4; clicks++ {
				if found = strings.Contains(a.body, wants[what]); found {
					break
				}
				next := nextPage.FindStringSubmatch(a.body)
				if next == nil {
					break
				}
				a = c.get(html.UnescapeString(next[1]))
			}
			if !found {
				t.Errorf("%s: nothing comes of it: %s", try.name, a.Request.URL)
			}
		}
		statements := tracer.take()
		if len(statements) > try.statements+1 && !try.searches { // on a busy machine a cached row ages meanwhile
			t.Errorf("%s takes %d statements, not %d", try.name, len(statements), try.statements)
		}
		seen := map[string]bool{}
		for _, s := range statements {
			if seen[s.sql] {
				continue
			}
			seen[s.sql] = true
			plan := explain(t, w.pool, s)
			if passing.MatchString(plan) && !strings.Contains(s.sql, "m.batch_id = $3") { // a batch has an index of its own
				t.Errorf("%s passes over other companies' messages:\n%s\n%s", try.name, s.sql, plan)
			}
			for _, table := range []string{"messages", "segments", "webhook_deliveries", "ledger", "receipts", "inbound",
				"inbound_messages", "opt_outs", "audit_log"} {
				if strings.Contains(plan, "Seq Scan on "+table+" ") || strings.HasSuffix(plan, "Seq Scan on "+table) {
					t.Errorf("%s reads the whole table %s:\n%s\n%s", try.name, table, s.sql, plan)
				}
			}
		}
	}
}

func explain(t *testing.T, pool *pgxpool.Pool, s statement) string {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if !testenv.Thorough() {
		if _, err := tx.Exec(t.Context(), "set local enable_seqscan = off"); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := tx.Query(t.Context(), "explain "+s.sql, s.args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("explaining %s: %v", s.sql, err)
	}
	return strings.Join(lines, "\n")
}
