package api

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/billing"
	"intumwa/contacts"
	"intumwa/dispatcher/settling"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/internal/audit"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
	acts "intumwa/operations"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

func TestMain(m *testing.M) { os.Exit(max(testenv.Run(m), unprovoked())) }

const testSender = "INTUMWATEST"

// world is a gateway without carriers, with the customers of the tests.
type world struct {
	t       testing.TB
	plan    *sms.Plan
	pool    *pgxpool.Pool
	deps    Deps
	senders *senders.Store
	keys    *keys.Store
	handler http.Handler
	server  *httptest.Server
	tokens  map[string]string
	users   map[string]int64
	company map[string]int64
	end     func() // stops intake
}

// worldOptions are a test's variations.
type worldOptions struct {
	Options
	Limit         int // requests a minute, 100000 if 0
	Verifications int // an hour, 1000 if 0
	FailedLogins  int // wrong tokens an address, not limited if 0
	Intake        func(*intake.Options)
	Line          *testenv.Line // when not nil, becomes intake's connection to the database
	Pool          *pgxpool.Pool // the database; nil: one of the tests'
	Keys          keys.Options
	TestNumbers   func(*testnumbers.Options)
}

// newWorld starts a gateway with a carrier for 6x and one for 7x, none for 29.
func newWorld(t testing.TB, o worldOptions) *world {
	t.Helper()
	w := &world{t: t, pool: o.Pool, tokens: map[string]string{}, users: map[string]int64{}, company: map[string]int64{}}
	if w.pool == nil {
		w.pool = testenv.Pool(t)
	}
	rdb, prefix := testenv.Redis(t)
	if o.Limit == 0 {
		o.Limit = 100_000
	}
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "lumitel", Prefixes: []string{"6", "31"}},
		{Carrier: "leo", Prefixes: []string{"7"}}})
	if err != nil {
		t.Fatal(err)
	}
	holders := keys.NewHolders(w.pool, o.Keys)
	w.keys = keys.New(w.pool, []byte("key"), holders)
	numbers := testnumbers.Options{Key: []byte("key"), Forget: holders.Forget, Replacements: 3}
	if o.TestNumbers != nil {
		o.TestNumbers(&numbers)
	}
	w.senders = senders.New(w.pool, testSender, holders.Forget)
	w.deps = Deps{
		Holders: holders, People: people.New(w.pool), Companies: companies.New(w.pool, holders.Forget),
		TestNumbers: testnumbers.New(w.pool, numbers),
		Throttle:    throttle.New(rdb, throttle.Options{Prefix: prefix, Limit: o.Limit, Timeout: 5 * time.Second}),
		Messages:    messages.New(w.pool), Lookup: lookup.New(w.pool), Statistics: statistics.New(w.pool),
		Handsets: handsets.New(w.pool),
		Ledger:   billing.New(w.pool),
		Webhooks: webhooks.New(w.pool, webhooks.Options{AllowPrivate: true}),
	}
	w.deps.Cancel = func(ctx context.Context, of messages.Queued) (cancelled, credits int64, err error) {
		done, err := settling.Cancel(ctx, w.pool, w.deps.Messages, w.deps.Webhooks, of, nil)
		return done.Cancelled, done.Credits, err
	}
	w.deps.Contacts = contacts.New(w.pool)
	w.deps.By = func(user int64) Acts {
		return acts.By(audit.User(user), nil, acts.Deps{Pool: w.pool})
	}
	w.deps.Verifications = verifications.New(w.pool, []byte("key"))
	in := intake.Options{TestSender: testSender, TestQuota: 5, Verifications: w.deps.Verifications,
		Events: w.deps.Webhooks.Enqueue,
		VerificationRate: throttle.New(rdb, throttle.Options{Prefix: prefix + ":verifications",
			Limit: cmp.Or(o.Verifications, 1000), Window: time.Hour, Timeout: 5 * time.Second})}
	if o.Intake != nil {
		o.Intake(&in)
	}
	accepting := w.pool
	if o.Line != nil {
		accepting = testenv.Unheard(t, w.pool, o.Line)
	}
	w.deps.Intake = intake.New(accepting, holders, w.deps.TestNumbers, w.deps.Messages,
		queue.New(rdb, queue.Options{Prefix: prefix}), routes, in)
	if o.FailedLogins > 0 {
		o.Options.FailedLogins = throttle.New(rdb, throttle.Options{Prefix: prefix + ":logins", Limit: o.FailedLogins,
			Timeout: 5 * time.Second})
	}
	w.plan = sms.NewPlan("6", "7", "31")
	o.Plan, o.TestSender, o.TestQuota, o.Replacements = w.plan, testSender, 5, 3
	if w.handler, err = New(w.deps, o.Options); err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewServer(w.handler)
	ctx, cancel := context.WithCancel(context.Background())
	w.end = cancel
	ended := make(chan error, 1)
	go func() { ended <- w.deps.Intake.Run(ctx) }()
	t.Cleanup(func() {
		w.server.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("intake ended: %v", err)
		}
	})
	return w
}

// customer adds a user with a token, and with the company if one is given.
func (w *world) customer(name string, company *companies.NewCompany) {
	w.t.Helper()
	ctx, email := context.Background(), name+"@example.com"
	// An argon2 hash for each customer would take most of a test's time.
	err := w.pool.QueryRow(ctx, `INSERT INTO users (email, name, password_hash) VALUES ($1, $2, 'none') RETURNING id`,
		email, name).Scan(new(int64))
	if err != nil {
		w.t.Fatalf("creating %s: %v", name, err)
	}
	token, text, err := w.keys.CreateToken(ctx, email, "test", accounts.TokenLimits{})
	if err != nil {
		w.t.Fatalf("creating a token of %s: %v", name, err)
	}
	w.tokens[name], w.users[name] = text, token.UserID
	if company == nil {
		return
	}
	company.OwnerEmail, company.Name = email, name
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		c, err := w.deps.Companies.CreateCompany(ctx, tx, *company)
		w.company[name] = c.ID
		if err != nil {
			return err
		}
		return billing.Open(ctx, tx, c.ID)
	})
	if err != nil {
		w.t.Fatalf("creating the company of %s: %v", name, err)
	}
}

func (w *world) sender(customer, name, country string, approved bool) {
	w.t.Helper()
	if _, err := w.senders.CreateSender(context.Background(), w.company[customer], name, country, approved); err != nil {
		w.t.Fatalf("creating a sender of %s: %v", customer, err)
	}
}

// credits sets a customer's balance.
func (w *world) credits(customer string, want int64) {
	w.t.Helper()
	ctx := context.Background()
	have, err := w.deps.Ledger.Balance(ctx, w.company[customer])
	if err == nil && have != want {
		err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			_, err := billing.Grant(ctx, tx, w.company[customer], want-have, "test")
			return err
		})
	}
	if err != nil {
		w.t.Fatalf("setting the credits of %s: %v", customer, err)
	}
}

// settle adds the customers of most tests.
func (w *world) settle() *world {
	w.t.Helper()
	w.customer("nocompany", nil)
	w.customer("new", &companies.NewCompany{})
	w.customer("approved", &companies.NewCompany{Approved: true})
	w.customer("live", &companies.NewCompany{Approved: true, Verified: true})
	w.customer("other", &companies.NewCompany{Approved: true, Verified: true})
	for _, customer := range []string{"new", "approved", "live", "other"} {
		w.sender(customer, "ACME", "", true)
		w.credits(customer, 1000)
	}
	w.sender("live", "NEWS", "", false)
	w.sender("live", "KIGALI", "RW", true)
	w.testNumber("live", "+25761234567")
	return w
}

func (w *world) testNumber(customer string, number sms.Number) {
	w.t.Helper()
	if _, err := w.deps.TestNumbers.SetTestNumber(context.Background(), customer+"@example.com", number,
		true); err != nil {
		w.t.Fatal(err)
	}
}

// reply is a response with its whole body.
type reply struct {
	status int
	header http.Header
	body   string
}

// do sends a request as a customer ("" without a token) and checks the response against the OpenAPI document. Headers
// come in pairs.
func (w *world) do(customer, method, path, body string, headers ...string) reply {
	w.t.Helper()
	req, err := http.NewRequest(method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token, ok := w.tokens[customer]; ok {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header[headers[i]] = []string{headers[i+1]}
	}
	resp, err := w.server.Client().Do(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	checkAgainstDocument(w.t, req, resp, text)
	return reply{resp.StatusCode, resp.Header, string(text)}
}

// count returns a query's only number.
func (w *world) count(query string, args ...any) (n int64) {
	w.t.Helper()
	if err := w.pool.QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// recorded counts everything that a request could leave: messages, batches, ledger entries, waiting messages.
func (w *world) recorded() [4]int64 {
	return [4]int64{w.count(`SELECT count(*) FROM messages`), w.count(`SELECT count(*) FROM batches`),
		w.count(`SELECT count(*) FROM ledger WHERE kind <> 'adjustment'`), w.count(`SELECT count(*) FROM outbox`)}
}
