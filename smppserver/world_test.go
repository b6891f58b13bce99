package smppserver_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/billing"
	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/intake"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/smpp"
	"intumwa/smppserver"
	"intumwa/smppserver/binds"
	"intumwa/sms"
	"intumwa/webhooks"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bank is a database with a company that may send as ACME and has a key of kind SMPP. Any number of processes serve it.
type bank struct {
	testing.TB
	pool      *pgxpool.Pool
	companies *companies.Store
	senders   *senders.Store
	keys      *keys.Store
	key       keys.Token
	password  string
	deps      func(*smppserver.Deps)   // changes those of its processes; nil: nothing
	change    func(*smppserver.Server) // changes its processes before they run; nil: nothing
}

func newBank(t testing.TB, credits int64, limits keys.SMPPLimits) *bank {
	t.Helper()
	return newBankOn(t, testenv.Pool(t), credits, limits)
}

// newBankOn is newBank in a database of the test's own.
func newBankOn(t testing.TB, pool *pgxpool.Pool, credits int64, limits keys.SMPPLimits) *bank {
	t.Helper()
	w := &bank{TB: t, pool: pool}
	w.keys, w.companies, w.senders = keys.New(w.pool, []byte("key"), nil), companies.New(w.pool, nil),
		senders.New(w.pool, "TEST", nil)
	ctx := context.Background()
	w.exec(`INSERT INTO users (email, name, password_hash) VALUES ('a@example.com', 'a', 'none')`)
	if err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		c, err := w.companies.CreateCompany(ctx, tx, companies.NewCompany{OwnerEmail: "a@example.com", Name: "a",
			Approved: true, Verified: true})
		if err == nil {
			err = billing.Open(ctx, tx, c.ID)
		}
		if err == nil && credits > 0 {
			_, err = billing.Grant(ctx, tx, c.ID, credits, "test")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.senders.CreateSender(ctx, 1, "ACME", "", true); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.key, w.password, err = w.keys.CreateSMPPKey(ctx, 1, "bank", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		limits); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *bank) exec(statement string, args ...any) {
	w.Helper()
	testenv.Exec(w, w.pool, statement, args...)
}

// count returns the number that a query selects.
func (w *bank) count(query string, args ...any) (n int64) {
	w.Helper()
	if err := w.pool.QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// process is one gateway process with the role smpp.
type process struct {
	address string
	server  *smppserver.Server
	holders *keys.Holders
	stop    func()
}

// start starts a process; it ends with the test at the latest.
func (w *bank) start() *process { return w.startAt("127.0.0.1:0") }

// startAt is start with a listener's address.
func (w *bank) startAt(address string) *process {
	w.Helper()
	rdb, prefix := testenv.Redis(w)
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Default: true}})
	if err != nil {
		w.Fatal(err)
	}
	known := keys.NewHolders(w.pool, keys.Options{Key: []byte("key")})
	store := messages.New(w.pool)
	in := intake.New(w.pool, known, testnumbers.New(w.pool, testnumbers.Options{}), store,
		queue.New(rdb, queue.Options{Prefix: prefix}), routes, intake.Options{TestSender: "TEST", TestQuota: 5})
	hooks := webhooks.New(w.pool, webhooks.Options{})
	deps := smppserver.Deps{Holders: known, Intake: in, Messages: store, Lookup: lookup.New(w.pool),
		Binds: binds.New(w.pool),
		Cancel: func(ctx context.Context, q messages.Queued) (int64, int64, error) {
			done, err := settling.Cancel(ctx, w.pool, store, hooks, q, nil)
			return done.Cancelled, done.Credits, err
		}}
	if w.deps != nil {
		w.deps(&deps)
	}
	p := &process{holders: known, server: smppserver.New(deps, smppserver.Options{Plan: sms.NewPlan()})}
	if w.change != nil {
		w.change(p.server)
	}
	listener, err := smppserver.Listen(context.Background(), address)
	if err != nil {
		w.Fatal(err)
	}
	p.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	serving, end := context.WithCancel(context.Background())
	var rest, door sync.WaitGroup
	rest.Go(func() { _ = in.Run(ctx) })
	rest.Go(func() { _ = p.server.Run(ctx) })
	door.Go(func() { _ = p.server.Serve(serving, listener) })
	p.stop = sync.OnceFunc(func() { end(); door.Wait(); cancel(); rest.Wait() })
	w.Cleanup(p.stop)
	return p
}

// client is a customer's program.
type client struct {
	*smpp.Bind
	w *bank

	mu       sync.Mutex
	received []*smpp.Delivery
	answer   func(*smpp.Delivery) // of deliver_sm; nil: ESME_ROK
}

// client starts a program that binds; it ends with the test.
func (w *bank) client(p *process, change func(*smpp.Options)) *client {
	w.Helper()
	c := &client{w: w}
	o := smpp.Options{Carrier: "us", Name: "bank",
		Account: smpp.Account{Addresses: []string{p.address}, SystemID: w.key.SystemID, Password: w.password},
		Window:  10, Version: smpp.Version34, Deliver: c.take}
	if change != nil {
		change(&o)
	}
	var err error
	if c.Bind, err = smpp.New(o); err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Run(ctx) }()
	w.Cleanup(func() { cancel(); <-ended })
	return c
}

// bound starts a program and waits until it is bound.
func (w *bank) bound(p *process, change func(*smpp.Options)) *client {
	w.Helper()
	c := w.client(p, change)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.WaitBound(ctx); err != nil {
		w.Fatalf("not bound: %v, %s", err, c.Snapshot().LastError)
	}
	return c
}

func (c *client) take(d *smpp.Delivery) {
	c.mu.Lock()
	c.received = append(c.received, d)
	answer := c.answer
	c.mu.Unlock()
	if answer != nil {
		answer(d)
		return
	}
	d.Respond(smpp.StatusOK)
}

// deliveries returns what came so far.
func (c *client) deliveries() []*smpp.Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*smpp.Delivery(nil), c.received...)
}

// submit sends a message and returns its result.
func (c *client) submit(change func(*smpp.Submit)) smpp.Result {
	c.w.Helper()
	m := smpp.Submit{Source: "ACME", SourceTON: 5, Dest: "25779123456", DestTON: 1, DestNPI: 1, RegisteredDelivery: 1,
		ShortMessage: []byte("Amahoro")}
	if change != nil {
		change(&m)
	}
	result := make(chan smpp.Result, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.Submit(ctx, &m, func(r smpp.Result) { result <- r }); err != nil {
		c.w.Fatal(err)
	}
	select {
	case r := <-result:
		return r
	case <-ctx.Done():
		c.w.Fatal("no answer to submit_sm")
		panic("not reached")
	}
}

// until waits for a condition.
func (w *bank) until(what string, condition func() bool) {
	w.Helper()
	for end := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("never came: %s", what)
		}
	}
}

// finish makes all pending messages final, as a carrier's receipts do.
func (w *bank) finish(status sms.Status, reason string) {
	w.Helper()
	store := messages.New(w.pool)
	if err := pgx.BeginFunc(context.Background(), w.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(context.Background(), `SELECT id FROM messages WHERE status = 0 ORDER BY id`)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		var finals []messages.Final
		for _, id := range ids {
			finals = append(finals, messages.Final{MessageID: id, Status: status, Reason: reason, At: time.Now()})
		}
		settled, err := store.Finish(context.Background(), tx, finals, messages.Rows{})
		if err != nil {
			return err
		}
		return binds.Add(context.Background(), tx, core.ReceiptsFor(settled))
	}); err != nil {
		w.Fatal(err)
	}
}
