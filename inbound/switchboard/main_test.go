package switchboard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts/companies"
	"intumwa/accounts/senders"
	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/sms"
	"intumwa/webhooks"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world is a switchboard on its own database, with companies 1 and 2 whose senders are ACME and 9090 (company 1) and
// Bank (company 2).
type world struct {
	*testing.T
	pool  *pgxpool.Pool
	store *handsets.Store
	board *Switchboard
	clock time.Time
}

func newWorld(t *testing.T, opts Options) *world {
	t.Helper()
	pool := testenv.PoolWith(t, postgres.Options{BatchUpdates: true})
	if opts.StopWords == nil {
		opts.StopWords, opts.StartWords = []string{"STOP", "ARRET", "HAGARIKA"}, []string{"START"}
	}
	if opts.Repeats == 0 {
		opts.Repeats = 2 * time.Minute
	}
	opts.TestSender = "INTUMWATEST"
	opts.Route = func(n sms.Number) (string, bool) { return "lumitel", n != "+25779999999" }
	w := &world{T: t, pool: pool, store: handsets.New(pool), clock: time.Now().Truncate(time.Second).Add(-time.Minute)}
	w.board = w.another(opts)
	for i := range 2 {
		w.exec(fmt.Sprintf(`INSERT INTO users (email, name, password_hash) VALUES ('u%d@example.com', 'u', '')`, i))
		w.exec(`INSERT INTO companies (owner_id, name, approved) VALUES ($1, 'c', true)`, i+1)
		w.exec(`INSERT INTO webhook_endpoints (company_id, url, secret, events) VALUES ($1, 'https://example.org', 's',
			'{sms.received}')`, i+1)
	}
	w.exec(`INSERT INTO senders (company_id, name, approved) VALUES (1, 'ACME', true), (1, '9090', true),
		(2, 'Bank', true)`)
	return w
}

// another returns the switchboard of another process.
func (w *world) another(opts Options) *Switchboard {
	return New(w.pool, companies.New(w.pool, nil), senders.New(w.pool, "INTUMWATEST", nil),
		webhooks.New(w.pool, webhooks.Options{}), opts)
}

func (w *world) exec(statement string, args ...any) {
	w.Helper()
	testenv.Exec(w, w.pool, statement, args...)
}

// one returns one value.
func one[T any](w *world, query string, args ...any) (value T) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), query, args...).Scan(&value); err != nil {
		w.Fatalf("%s: %v", query, err)
	}
	return value
}

// all returns the rows of one column.
func all[T any](w *world, query string, args ...any) []T {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), query, args...)
	if err != nil {
		w.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		w.Fatal(err)
	}
	return values
}

func (w *world) route(address, keyword, sender string, company int64) {
	w.Helper()
	if _, err := w.store.AddRoute(w.Context(), handsets.Route{Address: address, Keyword: keyword, Sender: sender,
		CompanyID: company}); err != nil {
		w.Fatal(err)
	}
}

// keep stores deliveries of a carrier, one second apart.
func (w *world) keep(inbound ...handsets.Inbound) {
	w.Helper()
	for i := range inbound {
		m := &inbound[i]
		w.clock = w.clock.Add(time.Second)
		m.At = w.clock
		if m.Carrier == "" {
			m.Carrier = "lumitel"
		}
		if m.Octets == nil {
			m.Octets = []byte(*m.Body)
		}
	}
	if err := pgx.BeginFunc(w.Context(), w.pool,
		func(tx pgx.Tx) error { return w.store.Keep(w.Context(), tx, inbound) }); err != nil {
		w.Fatal(err)
	}
}

// from returns a handset's text.
func from(number, to, text string) handsets.Inbound {
	return handsets.Inbound{Link: "l1", Source: number, Destination: to, Body: &text}
}

// part returns a part of a long text.
func part(m handsets.Inbound, reference int32, number, total int) handsets.Inbound {
	m.Part = &handsets.Part{Reference: reference, Total: total, Number: number}
	return m
}

// look runs the switchboard until no MO is new.
func (w *world) look() {
	w.Helper()
	if _, err := w.board.look(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// takes delivers texts and routes them.
func (w *world) takes(inbound ...handsets.Inbound) {
	w.Helper()
	w.keep(inbound...)
	w.look()
}

func (w *world) outcomes() []string {
	w.Helper()
	return all[string](w, `SELECT coalesce(outcome, '') FROM inbound ORDER BY id`)
}

func (w *world) optOuts() []string {
	w.Helper()
	return all[string](w, `SELECT company_id || ' ' || phone_number || ' ' || sender FROM opt_outs ORDER BY id`)
}

func (w *world) received() []string {
	w.Helper()
	return all[string](w, `SELECT company_id || ' ' || data FROM webhook_deliveries ORDER BY id`)
}

// run runs a switchboard until the test ends.
func (w *world) run(b *Switchboard) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("a board ended with %v", err)
		}
	})
}

func (w *world) until(what string, condition func() bool) {
	w.Helper()
	for end := time.Now().Add(60 * time.Second); !condition(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("never came: %s", what)
		}
	}
}
