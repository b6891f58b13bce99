package dashboard

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/billing"
	"intumwa/campaigns"
	"intumwa/contacts"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
	"intumwa/reports/exports"
	"intumwa/sms"
	"intumwa/verifications"
)

const testSender = "INTUMWATEST"

// sends adds what sends to a dashboard, without a connected carrier.
func (w *world) sends(deps *Deps, options *Options) {
	w.t.Helper()
	client, prefix := testenv.Redis(w.t)
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "lumitel", Prefixes: []string{"6"}},
		{Carrier: "leo", Prefixes: []string{"7"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	store := messages.New(w.pool)
	deps.Intake = intake.New(w.pool, w.holders, w.testNumbers, store, queue.New(client, queue.Options{Prefix: prefix}),
		routes, intake.Options{TestSender: testSender, TestQuota: 5,
			Verifications: verifications.New(w.pool, []byte("key")), Events: w.hooks.Enqueue,
			Repeats: throttle.NewRepeats(client, throttle.RepeatOptions{Prefix: prefix, Key: []byte("key"),
				Timeout: 5 * time.Second}),
			VerificationRate: throttle.New(client, throttle.Options{Prefix: prefix + ":verifications", Limit: 1000,
				Window: time.Hour, Timeout: 5 * time.Second})})
	deps.Verifications = verifications.New(w.pool, []byte("key"))
	deps.Messages, deps.Lookup, deps.Statistics, deps.Handsets = store, lookup.New(w.pool), statistics.New(w.pool),
		handsets.New(w.pool)
	deps.Contacts = contacts.New(w.pool)
	options.Plan, options.TestSender, options.TestQuota, options.Replacements = sms.NewPlan("6", "7"), testSender, 5, 3
	deps.Campaigns = campaigns.New(campaigns.Deps{Pool: w.pool, Holders: w.holders, People: w.people, Ledger: deps.Ledger,
		Intake: deps.Intake, Plan: options.Plan, Log: options.Log})
	if deps.Exports, err = exports.New(w.pool, 0, options.Log); err != nil {
		w.t.Fatal(err)
	}
	options.APIURL = "https://api.example.com/v1"
	w.run(deps.Intake.Run)
}

// customer returns a signed-in user with an approved company, a sender ID and credits.
func (w *world) customer(name, sender string, credits int64) (*client, people.User, accounts.Company) {
	w.t.Helper()
	email := name + "@example.com"
	u := w.user(email, false)
	c := w.company(email, name)
	w.exec(`update companies set approved = true, verified = true where id = $1`, c.ID)
	if _, err := w.senders.CreateSender(w.t.Context(), c.ID, sender, "BI", true); err != nil {
		w.t.Fatal(err)
	}
	if credits > 0 {
		w.grant(c.ID, credits, "invoice 7")
	}
	browser := newClient(w)
	browser.signIn(email)
	return browser, u, c
}

// insert stores messages as intake does, without a dispatcher, and returns their ids.
func (w *world) insert(list ...*messages.Message) (ids []int64) {
	w.t.Helper()
	for _, m := range list {
		m.ULID, m.Sender, m.Segments, m.Carrier, m.Validity = ulid.Make(), "DEMO", 1, "lumitel", time.Hour
	}
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) (err error) {
		ids, err = messages.New(w.pool).Insert(w.t.Context(), tx, list)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// credits expects a company's balance.
func (w *world) credits(company, want int64) {
	w.t.Helper()
	if n, err := billing.New(w.pool).Balance(w.t.Context(), company); err != nil || n != want {
		w.t.Errorf("%d credits (%v), want %d", n, err, want)
	}
}

// counts expects a query's count.
func (w *world) counts(want int, query string, args ...any) {
	w.t.Helper()
	if n := w.count(query, args...); n != want {
		w.t.Errorf("%s: %d, want %d", query, n, want)
	}
}

func (w *world) count(query string, args ...any) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(context.WithoutCancel(w.t.Context()), query, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// accept stores a company's message as intake does.
func (w *world) accept(company, user int64, number sms.Number, carrier string) ulid.ULID {
	w.t.Helper()
	approved := w.count(`select count(*) from companies where id = $1 and approved`, company) == 1
	m := &messages.Message{ULID: ulid.Make(), CompanyID: company, UserID: user, Number: number, Sender: "ISOKO",
		Body: "Amahoro <b>", Encoding: sms.GSM7,
		// without an approval only a test message is allowed
		Segments: 1, Carrier: carrier, Validity: time.Hour, Test: !approved}
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := messages.New(w.pool).Insert(w.t.Context(), tx, []*messages.Message{m})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return m.ULID
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(context.WithoutCancel(w.t.Context()), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}
