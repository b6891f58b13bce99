package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/billing"
	"intumwa/billing/ebms"
	"intumwa/billing/orders"
	"intumwa/campaigns"
	"intumwa/contacts"
	"intumwa/dashboard"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/internal/audit"
	"intumwa/internal/mail"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
	"intumwa/reports/exports"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

// pages is a dashboard on a shell's database, with its visitors.
type pages struct {
	t   *testing.T
	url string
}

func (s *shell) pages() *pages {
	s.t.Helper()
	pool := s.pool()
	mailer, err := mail.New(mail.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	files, err := exports.New(pool, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Default: true}})
	if err != nil {
		s.t.Fatal(err)
	}
	holders, numbers := keys.NewHolders(pool, keys.Options{}), testnumbers.New(pool, testnumbers.Options{})
	d, err := dashboard.New(dashboard.Deps{Pool: pool, Many: pool, People: people.New(pool),
		SignIn: people.NewSignIn(pool, nil), Sessions: people.NewSessions(pool),
		Companies: companies.New(pool, nil), Keys: keys.New(pool, nil, holders), Holders: holders,
		Senders: senders.New(pool, "", nil), TestNumbers: numbers,
		Intake: intake.New(pool, holders, numbers, messages.New(pool), nil, routes, intake.Options{}),
		Ledger: billing.New(pool), Statements: billing.New(pool), Orders: orders.New(pool, orders.Options{}),
		Messages: messages.New(pool), Lookup: lookup.New(pool), Statistics: statistics.New(pool),
		Handsets: handsets.New(pool), Verifications: verifications.New(pool, nil),
		Campaigns: campaigns.New(campaigns.Deps{Pool: pool}), Exports: files, Mailer: mailer,
		Contacts: contacts.New(pool), Imports: contacts.NewImports(pool, sms.NewPlan(), slog.New(slog.DiscardHandler)),
		TaxOffice: ebms.NewClient(ebms.Access{}),
		Webhooks:  webhooks.New(pool, webhooks.Options{AllowPrivate: true})}, dashboard.Options{SMPP: true})
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewServer(d)
	s.t.Cleanup(server.Close)
	return &pages{s.t, server.URL}
}

// visitor is a signed-in browser.
type visitor struct {
	*pages
	client *http.Client
}

func (p *pages) visitor(email string) *visitor {
	p.t.Helper()
	jar, _ := cookiejar.New(nil) // without a list of suffixes it never fails
	v := &visitor{p, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
	v.post("/sign-in", "email", email, "password", "twelve green bananas")
	return v
}

var hiddenFields = regexp.MustCompile(`<input type="hidden" name="(key|facts|version)" value="([^"]+)">`)

// post sends a form, with the hidden fields of a page.
func (v *visitor) post(path string, pairs ...string) {
	v.t.Helper()
	form := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[0] != "page" {
			form.Set(pair[0], pair[1])
			continue
		}
		page, err := v.client.Get(v.url + pair[1])
		if err != nil {
			v.t.Fatal(err)
		}
		text, _ := io.ReadAll(page.Body)
		page.Body.Close()
		for _, field := range hiddenFields.FindAllStringSubmatch(string(text), -1) {
			form.Set(field[1], field[2])
		}
	}
	answer, err := v.client.PostForm(v.url+path, form)
	if err != nil {
		v.t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther {
		v.t.Fatalf("POST %s: %s\n%s", path, answer.Status, text)
	}
}

// trace is what an act leaves: entries without their ids and actors, and letters.
type trace struct{ Entries, Letters []string }

// trace empties the letters and returns what was left since the last call.
func (s *shell) trace(since *int64, company int64) (left trace) {
	s.t.Helper()
	list, _, err := audit.List(s.t.Context(), s.pool(), audit.Filter{}, 0, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	keys := func(state json.RawMessage) string {
		var fields map[string]any
		if state != nil && json.Unmarshal(state, &fields) != nil {
			s.t.Errorf("a state is no object: %s", state)
		}
		return strings.Join(slices.Sorted(maps.Keys(fields)), " ")
	}
	for _, a := range slices.Backward(list) {
		if a.ID > *since {
			subject, _, _ := strings.Cut(a.Subject, " ")
			left.Entries = append(left.Entries, fmt.Sprintf("%s on %s, the company's own: %t, before {%s}, after {%s}", a.Act,
				subject, int64(a.Company) == company, keys(a.Before), keys(a.After)))
		}
	}
	if len(list) > 0 {
		*since = list[0].ID
	}
	rows, err := s.pool().Query(s.t.Context(), `with gone as (delete from letters returning kind, said)
		select kind || ' ' || coalesce((select string_agg(k, ' ' order by k) from jsonb_object_keys(case jsonb_typeof(said)
			when 'object' then said end) k), '') from gone order by 1`)
	if err == nil {
		left.Letters, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return left
}

// TestPageAndCommand: an act leaves the same entries in the audit log and the same letters, by page and by command.
// When it changes nothing, both leave nothing.
func TestPageAndCommand(t *testing.T) {
	s := newAdminOf(t)
	for _, name := range []string{"page", "command"} {
		for _, user := range []string{"owner", "second", "reader", "root"} {
			args := []string{"admin", "user", "create", "--email", user + "@" + name + ".example", "--name", "N",
				"--password-stdin"}
			if user == "root" || user == "second" {
				args = append(args, "--administrator")
			}
			if code, _, stderr := s.run("twelve green bananas", args...); code != exitOK {
				t.Fatal(stderr)
			}
		}
	}
	p := s.pages()
	owner, root := p.visitor("owner@page.example"), p.visitor("root@page.example")
	root.post("/admin/enter", "proof", "twelve green bananas")
	var since int64
	s.trace(&since, 0)
	today := postgres.Now().In(sms.Burundi).Format(time.DateOnly)
	tomorrow := postgres.Now().In(sms.Burundi).AddDate(0, 0, 1).Format(time.DateOnly)

	// Company 1 is changed by pages, company 2 by commands.
	for _, act := range []struct {
		name, prepare string // a statement for both
		page          func()
		command       string // arguments, separated by |
		once          bool   // repeating it changes something
	}{
		{name: "company.create", page: func() { owner.post("/company/new", "name", "Isoko") },
			command: "company|create|--owner|owner@command.example|--name|Isoko"},
		{name: "approve", page: func() { root.post("/admin/companies/1/approve") },
			command: "company|set|--id|2|--approved=true"},
		{name: "verify", page: func() { root.post("/admin/companies/1/verify") },
			command: "company|set|--id|2|--verified=true"},
		{name: "end verification", page: func() {
			root.post("/admin/companies/1/withdraw", "what", "verification", "reason",
				"fraud")
		}, command: "company|set|--id|2|--verified=false|--reason|fraud"},
		{name: "low balance", page: func() { owner.post("/statement/threshold", "threshold", "10") },
			command: "company|set|--id|2|--low-balance|10"},
		{name: "credits", page: func() {
			root.post("/admin/companies/1/credits", "page", "/admin/companies/1", "amount", "5", "note", "paid")
		}, command: "credits|add|--company|2|--amount|5|--note|paid", once: true},
		{name: "correction", page: func() {
			root.post("/admin/companies/1/credits", "page", "/admin/companies/1", "amount", "5", "correction", "yes", "note",
				"our mistake")
		}, command: "credits|add|--company|2|--amount|5|--correction|--note|our mistake", once: true},
		{name: "price", page: func() { root.post("/admin/prices", "company", "1", "valid_from", today, "bif", "12,5") },
			command: "price|set|--company|2|--from|" + today + "|--bif|12.5"},
		{name: "price for all", page: func() { root.post("/admin/prices", "valid_from", today, "bif", "10") },
			command: "price|set|--from|" + tomorrow + "|--bif|10"},
		{name: "order", page: func() { owner.post("/orders", "credits", "100", "price", "12.5") },
			command: "order|create|--company|2|--credits|100", once: true},
		{name: "part of an order", page: func() {
			root.post("/admin/orders/1/pay", "page", "/admin/orders/1", "amount", "250", "way", "bank", "reference", "V 1", "on",
				today)
		}, command: "order|pay|--id|2|--amount|250|--way|bank|--reference|V 1|--again|--on|" + today, once: true},
		{name: "pay an order", page: func() {
			root.post("/admin/orders/1/pay", "page", "/admin/orders/1", "amount", "1000", "way", "cash", "reference", "V 2",
				"on",
				today)
		}, command: "order|pay|--id|2|--amount|1000|--way|cash|--reference|V 2|--again|--on|" + today, once: true},
		{name: "cancel an order", prepare: `insert into orders (company_id, credits, centimes) values (1, 1, 100), (2, 1, 100)`,
			page:    func() { root.post("/admin/orders/3/cancel", "reason", "a mistake") },
			command: "order|cancel|--id|4|--reason|a mistake", once: true},
		{name: "no price any more", page: func() { root.post("/admin/prices", "company", "1", "valid_from", today) },
			command: "price|set|--company|2|--from|" + today + "|--bif|none"},
		{name: "tariff", page: func() {
			root.post("/admin/tariffs", "carrier", "leo", "tariff_from", "2026-01-01", "tariff",
				"7")
		}, command: "tariff|set|--carrier|leo|--from|2026-01-02|--bif|7"},
		{name: "report an invoice", prepare: `with s as (insert into invoice_series values ('sale', 2, now())
			on conflict do nothing), o as (insert into orders (company_id, credits, centimes, paid_at) values (1, 1, 100, now()),
			(2, 1, 100, now()) returning id, company_id), i as (insert into invoices (kind, number, order_id, company_id,
			issued_at, issued_by, credits, centimes, net, taxes, total, paid, seller, customer, ref)
			select 'sale', company_id, id,
			company_id, now(), 'x', 1, 100, 1, '[]', 1, 1, '{}', '{}', gen_random_uuid() from o)
			insert into ebms_reports (name, identifier, issued_at, refused_at) select 'F00000' || company_id, 'x', now(), now()
			from o`, page: func() { root.post("/admin/ebms", "invoice", "F000001", "do", "again") },
			command: "invoice|report|--number|F000002"},
		{name: "report an invoice without the NIF", page: func() {
			root.post("/admin/ebms", "invoice", "F000001", "do", "without")
		}, command: "invoice|report|--number|f2|--without-nif"},
		{name: "approve a sender", prepare: `insert into senders (id, company_id, name, country,
			purpose) overriding system value values (1, 1, 'ISOKO', 'BI', 'news'), (2, 2, 'ISOKO', 'BI', 'news')`,
			page:    func() { root.post("/admin/senders/1/approve", "page", "/admin/senders") },
			command: "sender|set|--id|2|--approved=true", once: true},
		{name: "end a sender's approval", page: func() { root.post("/admin/senders/1/withdraw", "reason", "a bank's") },
			command: "sender|set|--id|2|--approved=false|--reason|a bank's"},
		{name: "refuse a sender", prepare: `update senders set refused_at = null, refusal = ''`,
			page:    func() { root.post("/admin/senders/1/withdraw", "reason", "a bank's") },
			command: "sender|refuse|--id|2|--reason|a bank's"},
		{name: "send a sender to a carrier", page: func() {
			root.post("/admin/senders/1/carriers", "page", "/admin/senders/1", "carrier", "leo", "state", "sent", "sent_on",
				"2026-03-01")
		}, command: "sender|carrier|set|--id|2|--carrier|leo|--state|sent|--sent-on|2026-03-01"},
		{name: "a carrier refuses a sender", page: func() {
			root.post("/admin/senders/1/carriers", "page", "/admin/senders/1", "carrier", "leo", "state", "refused", "reason",
				"a bank's")
		}, command: "sender|carrier|set|--id|2|--carrier|leo|--state|refused|--reason|a bank's"},
		{name: "a carrier approves a sender", page: func() {
			root.post("/admin/senders/1/carriers", "page", "/admin/senders/1", "carrier", "leo", "state", "approved")
		}, command: "sender|carrier|set|--id|2|--carrier|leo|--state|approved"},
		{name: "create a token", page: func() { owner.post("/keys", "name", "Till") },
			command: "token|create|--user|owner@command.example|--name|Till", once: true},
		{name: "revoke a token", page: func() { root.post("/admin/keys/1/revoke") }, command: "token|revoke|--id|2"},
		{name: "create an SMPP key", page: func() { owner.post("/smpp", "name", "Bank", "networks", "192.0.2.0/24") },
			command: "smpp|create|--company|2|--name|Bank|--networks|192.0.2.0/24", once: true},
		{name: "change an SMPP key", page: func() {
			root.post("/admin/smpp/3", "sessions", "8", "window", "10", "tps", "100", "networks", "192.0.2.0/24")
		}, command: "smpp|set|--id|4|--sessions|8|--tps|100"},
		{name: "unbind", prepare: `insert into smpp_binds (account, process, peer, mode, seen_at)
			values (3, 'p0', '192.0.2.1:4000', 'receiver', now() + '1 h'), (4, 'p0', '192.0.2.1:4001', 'receiver',
			now() + '1 h')`,
			page: func() { owner.post("/smpp/3/unbind") }, command: "smpp|unbind|--id|4", once: true},
		{name: "revoke an SMPP key", page: func() { owner.post("/smpp/3/revoke") }, command: "smpp|revoke|--id|4"},
		{name: "set a webhook", page: func() { owner.post("/webhook", "url", "http://127.0.0.1:1/a?b=c") },
			command: "webhook|set|--company|2|--url|http://127.0.0.1:1/a?b=c"},
		{name: "move a webhook", page: func() { owner.post("/webhook", "url", "http://127.0.0.1:1/a?b=d") },
			command: "webhook|set|--company|2|--url|http://127.0.0.1:1/a?b=d"},
		{name: "switch a webhook", page: func() { owner.post("/webhook/active", "on", "no") },
			command: "webhook|set|--company|2|--active=false"},
		{name: "its events", page: func() { owner.post("/webhook/events", "event", "sms.received", "on", "yes") },
			command: "webhook|set|--company|2|--events|sms.received"},
		{name: "ask for a text", page: func() { owner.post("/verifications/text", "locale", "fr", "text", "Isoko {{code}}") },
			command: "verification|text|ask|--company|2|--locale|fr|--text|Isoko {{code}}"},
		{name: "approve a text", prepare: `update verification_texts set asked_at = now()`,
			page:    func() { root.post("/admin/verifications/1/approve", "page", "/admin/verifications") },
			command: "verification|text|approve|--id|2"},
		{name: "refuse a text", page: func() { root.post("/admin/verifications/1/refuse", "reason", "no warning") },
			command: "verification|text|refuse|--id|2|--reason|no warning"},
		{name: "events to fetch", page: func() { owner.post("/webhook/pulled", "event", "batch.finished", "on", "yes") },
			command: "webhook|pull|--company|2|--events|batch.finished"},
		{name: "rotate", page: func() { owner.post("/webhook/rotate") }, command: "webhook|rotate|--company|2", once: true},
		{name: "end a rotation", page: func() { owner.post("/webhook/rotate/end") },
			command: "webhook|rotate|--company|2|--end"},
		{name: "recover", prepare: `insert into webhook_undelivered (company_id, id, at, phone_number, due, given_up_at)
			select n, 8 * n, now(), '', 'infinity', now() from generate_series(1, 2) n`,
			page:    func() { owner.post("/deliveries/recovery", "from", "2026-03-01T08:00") },
			command: "webhook|recover|--company|2|--since|2026-03-01"},
		{name: "resend", page: func() { owner.post("/deliveries/of/8/resend") }, command: "webhook|resend|--id|16",
			once: true},
		{name: "disable", page: func() { root.post("/admin/users/2/disable", "reason", "left") },
			command: "user|disable|--email|second@command.example|--reason|left"},
		{name: "enable", page: func() { root.post("/admin/users/2/enable", "reason", "back") },
			command: "user|enable|--email|second@command.example|--reason|back"},
		{name: "reset", page: func() { root.post("/admin/users/2/reset", "reason", "phone") },
			command: "user|reset|--email|second@command.example|--reason|phone", once: true},
		{name: "demote", page: func() { root.post("/admin/users/2/demote", "reason", "left") },
			command: "user|demote|--email|second@command.example|--reason|left", once: true},
		{name: "role", prepare: `update users set company_id = case when email like '%page%' then 1
			else 2 end, role = 'reader' where email like 'reader%'`,
			page:    func() { owner.post("/people/3/role", "role", "finance") },
			command: "user|role|--email|reader@command.example|--role|finance"},
		{name: "remove", page: func() { owner.post("/people/3/remove") },
			command: "user|role|--email|reader@command.example|--role|none", once: true},
		{name: "pause", prepare: `insert into links (name, carrier) values ('leo-1', 'leo'), ('leo-2', 'leo')`,
			page: func() { root.post("/admin/links/leo-1/pause") }, command: "link|pause|--name|leo-2"},
		{name: "resume", page: func() { root.post("/admin/links/leo-1/resume") }, command: "link|resume|--name|leo-2"},
		{name: "export a month", page: func() { owner.post("/messages/exports", "month", time.Now().Format("2006-01")) },
			command: "report|export|--company|2|--month|" + time.Now().Format("2006-01"), once: true},
		{name: "delete a contact", prepare: `with made as (insert into contacts (id, company_id, phone_number)
			overriding system value values (1, 1, '+25771000001'), (2, 2, '+25771000001'))
			insert into contact_books (company_id, contacts) values (1, 1), (2, 1)`,
			page: func() { owner.post("/contacts/1/delete") }, command: "contacts|delete|--company|2|--id|2", once: true},
		{name: "cancel a batch", prepare: `insert into batches (ulid, company_id, user_id, kind, sender, recipients_count,
			item_count) select ('01900000-0000-7000-8000-00000000000' || n)::uuid, n, 1, 'bulk', 'ISOKO', 1, 1
			from generate_series(1, 2) n`,
			page:    func() { owner.post("/batches/01J0000000E008000000000001/cancel") },
			command: "batch|cancel|--id|01J0000000E008000000000002", once: true},
	} {
		t.Run(act.name, func(t *testing.T) {
			if act.prepare != "" {
				s.exec(act.prepare)
			}
			command := func() {
				code, _, stderr := s.run("", append([]string{"admin"}, strings.Split(act.command, "|")...)...)
				if code != exitOK {
					t.Fatal(stderr)
				}
			}
			act.page()
			byPage := s.trace(&since, 1)
			command()
			byCommand := s.trace(&since, 2)
			if fmt.Sprint(byPage) != fmt.Sprint(byCommand) || len(byPage.Entries) == 0 {
				t.Errorf("by page:    %q\nby command: %q", byPage, byCommand)
			}
			if act.once || act.name == "company.create" {
				return
			}
			act.page()
			command()
			if again := s.trace(&since, 1); len(again.Entries)+len(again.Letters) > 0 {
				t.Errorf("repeated, without a change: %q", again)
			}
		})
	}
}

// TestReasonsAreRecorded: every reason that an operator gives is in the entry of the act.
func TestReasonsAreRecorded(t *testing.T) {
	s := newAdminOf(t)
	for _, user := range []string{"owner", "second"} {
		if code, _, stderr := s.run("twelve green bananas", "admin", "user", "create", "--email", user+"@example.com",
			"--name", "N", "--password-stdin", "--administrator"); code != exitOK {
			t.Fatal(stderr)
		}
	}
	for _, command := range []string{
		"company|create|--owner|owner@example.com|--name|Isoko", "sender|create|--company|1|--name|ISOKO",
		"company|set|--id|1|--approved=true|--reason|WHY", "company|set|--id|1|--verified=true|--reason|WHY",
		"company|set|--id|1|--daily-cap|5|--reason|WHY",
		"company|set|--id|1|--verified=false|--reason|WHY", "sender|set|--id|1|--approved=true|--reason|WHY",
		"sender|set|--id|1|--approved=false|--reason|WHY", "sender|refuse|--id|1|--reason|WHY, again",
		"sender|carrier|set|--id|1|--carrier|leo|--state|refused|--reason|WHY",
		"user|disable|--email|second@example.com|--reason|WHY", "user|enable|--email|second@example.com|--reason|WHY",
		"user|demote|--email|second@example.com|--reason|WHY",
		"user|reset|--email|second@example.com|--reason|WHY", "company|cancel|--id|1|--reason|WHY",
		"credits|add|--company|1|--amount|5|--note|WHY",
	} {
		if code, _, stderr := s.run("", append([]string{"admin"}, strings.Split(command, "|")...)...); code != exitOK {
			t.Fatal(command, stderr)
		}
		// a cancellation has its reason at the beginning
		entries, _, err := audit.List(t.Context(), s.pool(), audit.Filter{}, 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		entry := entries[0]
		if strings.HasSuffix(entry.Act, ".done") {
			entry = entries[1]
		}
		if strings.Contains(command, "WHY") && !strings.Contains(string(entry.After), "WHY") {
			t.Errorf("%s: %s", command, entry.After)
		}
	}
}
