package dispatcher_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intumwa/dispatcher"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/setup"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/smpp"
	"intumwa/sms"
	"intumwa/tools/carriersim"
	"intumwa/webhooks"
)

// slack multiplies deadlines, for busy machines: beside another whole suite on two cores, waits took over three times
// as long.
const slack = 8

// world is a dispatcher between real stores and simulated carriers, over TCP.
type world struct {
	*testing.T
	pool, hot *pgxpool.Pool
	queue     *queue.Queue
	store     *messages.Store
	registry  *prometheus.Registry
	log       *logBook
	d         *dispatcher.Dispatcher
	stop      func()
	ended     chan struct{}
	serial    *atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	rdb, prefix := testenv.Redis(t)
	return newWorldWith(t, rdb.Options(), prefix)
}

// newWorldWith returns a world whose queue is on a given server.
func newWorldWith(t *testing.T, at *redis.Options, prefix string) *world {
	t.Helper()
	w := &world{T: t, log: &logBook{}, serial: new(atomic.Int64)}
	w.pool, w.hot = testenv.Pools(t, postgres.Options{}, postgres.Options{BatchUpdates: true})
	testenv.Companies(t, w.pool, 2)
	client := func(connections int) *redis.Client {
		c := redis.NewClient(&redis.Options{Network: at.Network, Addr: at.Addr, Username: at.Username, Password: at.Password,
			DB:       at.DB,
			PoolSize: connections, ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	rdb, waiting := client(20), client(200) // one per waiting feeder
	w.queue = queue.New(rdb, queue.Options{Prefix: prefix, Waiting: waiting})
	w.store = messages.New(w.hot)
	return w
}

// in is the world for a subtest.
func (w *world) in(t *testing.T) *world {
	other := *w
	other.T = t
	return &other
}

// sim is a listening simulated carrier and its address.
type sim struct {
	*carriersim.Carrier
	address string
	stop    func()
}

// carrier runs a simulated carrier.
func (w *world) carrier(o carriersim.Options) *sim {
	w.Helper()
	o.Seed = cmp.Or(o.Seed, 7)
	return w.listen(carriersim.New(o))
}

func (w *world) listen(c *carriersim.Carrier) *sim {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	s := &sim{Carrier: c, address: listener.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Serve(ctx, listener)
	}()
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
	w.Cleanup(s.stop)
	return s
}

// link is the configuration of a link to the carrier, with short times.
func (s *sim) link(name string, change ...func(*setup.Link)) setup.Link {
	l := setup.Link{Options: smpp.Options{Name: name,
		Account: smpp.Account{Addresses: []string{s.address}, SystemID: "intumwa", Password: "secret"},
		// a busy machine answers within
		Window: 20, EnquireLink: 2 * time.Second, EnquireTimeout: 5 * time.Second, ResponseTimeout: time.Second,
		UnknownHold: 10 * time.Second, BindTimeout: 10 * time.Second, DrainTimeout: 500 * time.Millisecond,
		UnbindTimeout: 500 * time.Millisecond}}
	for _, c := range change {
		c(&l)
	}
	return l
}

// mno is the configuration of a carrier called lumitel with one link.
func (s *sim) mno(change ...func(*setup.Carrier)) setup.Carrier {
	return named("lumitel", s, change...)
}

func named(name string, s *sim, change ...func(*setup.Carrier)) setup.Carrier {
	c := setup.Carrier{Name: name, Profile: profile.Profile{Source: profile.Sources{Alphanumeric: profile.TONNPI{TON: 5}},
		Dest: profile.TONNPI{TON: 1, NPI: 1}}, RetryMin: 50 * time.Millisecond, RetryMax: time.Second}
	if s != nil {
		c.Links = []setup.Link{s.link(name + "-1")}
	}
	for _, change := range change {
		change(&c)
	}
	return c
}

// holds sets how long the first link waits for a missing answer, and when it
// raises the alarm before that. It detects a dead peer sooner.
func holds(c *setup.Carrier, hold, alarm time.Duration) {
	l := &c.Links[0]
	l.UnknownHold, l.ResponseTimeout, l.EnquireLink, l.EnquireTimeout = hold, alarm, 200*time.Millisecond,
		1500*time.Millisecond
}

// start runs a dispatcher and waits until its links are bound.
func (w *world) start(carriers ...setup.Carrier) {
	w.Helper()
	w.startWith(setup.Options{}, carriers...)
	for _, c := range carriers {
		for _, l := range c.Links {
			w.awaitLink(l.Name, "bound")
		}
	}
}

func (w *world) startWith(o setup.Options, carriers ...setup.Carrier) {
	w.Helper()
	w.registry = prometheus.NewRegistry()
	o.Carriers = carriers
	o.Heartbeat, o.SweepInterval = cmp.Or(o.Heartbeat, 200*time.Millisecond), cmp.Or(o.SweepInterval, 100*time.Millisecond)
	o.DeadAfter, o.BreakerPause = cmp.Or(o.DeadAfter, 10*time.Second), cmp.Or(o.BreakerPause, time.Second)
	o.Log, o.Metrics = slog.New(slog.NewTextHandler(w.log, nil)), w.registry
	hooks := webhooks.New(w.hot, webhooks.Options{})
	d, err := dispatcher.New(w.pool, w.hot, w.queue, hooks, o)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := d.Run(ctx); err != nil {
			w.Errorf("the dispatcher ended: %v", err)
		}
	}()
	w.d, w.ended = d, ended
	w.stop = sync.OnceFunc(func() { cancel(); <-ended })
	w.Cleanup(w.stop)
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("log:\n%s", w.log)
		}
	})
}

// number returns a handset whose last two digits are the fate.
func (w *world) number(fate string) sms.Number {
	return sms.Number(fmt.Sprintf("+257%06d%s", 610_000+w.serial.Add(1), fate))
}

// note is a message to send.
type note struct {
	to       sms.Number
	text     string
	carrier  string
	sender   string
	company  int64
	batch    *messages.Batch
	validity time.Duration
	sendAt   time.Time
	expireAt time.Time
}

// send accepts messages as intake does: recorded, then on the queue.
func (w *world) send(notes ...note) []int64 {
	w.Helper()
	ids, items := w.insert(notes...)
	if err := w.queue.Push(w.Context(), items); err != nil { // a busy machine; the dispatcher finds them
		w.Logf("a push failed: %v", err)
	}
	return ids
}

// insert is send up to the commit.
func (w *world) insert(notes ...note) (ids []int64, items []queue.Item) {
	w.Helper()
	list := make([]*messages.Message, len(notes))
	for i, n := range notes {
		text := cmp.Or(n.text, "Muraho")
		encoding, segments := sms.Count(text)
		list[i] = &messages.Message{ULID: ulid.Make(), CompanyID: n.company, UserID: 1, Batch: n.batch, Number: n.to,
			Sender: cmp.Or(n.sender, "DEMO"), Body: text,
			Encoding: encoding, Segments: segments, Carrier: cmp.Or(n.carrier, "lumitel"),
			Validity: cmp.Or(n.validity, time.Hour),
			SendAt:   n.sendAt, ExpireAt: n.expireAt, Scheduled: n.sendAt.After(time.Now())}
	}
	err := pgx.BeginFunc(w.Context(), w.hot, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(w.Context(), `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
			// thousands of messages take long on a busy machine
			return err
		}
		ids, err = w.store.Insert(w.Context(), tx, list)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	for i, id := range ids {
		if list[i].Scheduled {
			continue
		}
		items = append(items, queue.Item{MessageID: id, CompanyID: list[i].CompanyID, Carrier: list[i].Carrier,
			Lane: queue.Lane(list[i].Lane())})
	}
	return ids, items
}

// sendTo sends a short text to a new handset of a fate.
func (w *world) sendTo(fate string) int64 {
	w.Helper()
	return w.send(note{to: w.number(fate)})[0]
}

// sendMany sends n short texts to new handsets of a fate.
func (w *world) sendMany(n int, fate string) []int64 {
	w.Helper()
	notes := make([]note, n)
	for i := range notes {
		notes[i] = note{to: w.number(fate)}
	}
	return w.send(notes...)
}

// statusOf reads a message's status and reason of failure.
func (w *world) statusOf(id int64) (status, reason string) {
	w.Helper()
	var s sms.Status
	if err := w.pool.QueryRow(w.Context(), `SELECT status, coalesce(failure_reason, '') FROM messages WHERE id = $1`,
		id).Scan(&s, &reason); err != nil {
		w.Fatal(err)
	}
	return s.String(), reason
}

// await waits until messages have a status.
func (w *world) await(want string, within time.Duration, ids ...int64) {
	w.Helper()
	code := map[string]sms.Status{"pending": sms.Pending, "sent": sms.Sent, "failed": sms.Failed}[want]
	n := 0
	w.eventually(within, func() bool {
		n = w.count(`SELECT count(*) FROM messages WHERE id = ANY($1) AND status = $2`, ids, int16(code))
		return n == len(ids)
	}, func() string { return fmt.Sprintf("%d of %d messages are %s", n, len(ids), want) })
}

// stays fails the test if a condition becomes false within d.
func (w *world) stays(d time.Duration, what string, condition func() bool) {
	w.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if !condition() {
			w.Fatalf("did not hold: %s", what)
		}
	}
}

func (w *world) eventually(within time.Duration, condition func() bool, what func() string) {
	w.Helper()
	for end := time.Now().Add(within * slack); !condition(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not within %s: %s", within, what())
		}
	}
}

func (w *world) until(what string, condition func() bool) {
	w.Helper()
	w.eventually(10*time.Second, condition, func() string { return what })
}

func (w *world) count(query string, args ...any) (n int) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), query, args...).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) exec(statement string, args ...any) {
	w.Helper()
	testenv.Exec(w, w.pool, statement, args...)
}

func (w *world) text(query string, args ...any) (s string) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), query, args...).Scan(&s); err != nil {
		w.Fatal(err)
	}
	return s
}

// linkState is a link's state for operators.
func (w *world) linkState(name string) dispatcher.LinkState {
	w.Helper()
	links, err := dispatcher.Links(w.Context(), w.pool)
	if err != nil {
		w.Fatal(err)
	}
	for _, l := range links {
		if l.Link == name {
			return l
		}
	}
	return dispatcher.LinkState{State: "unknown"}
}

func (w *world) awaitLink(name, state string) {
	w.Helper()
	var last dispatcher.LinkState
	w.eventually(10*time.Second, func() bool { last = w.linkState(name); return last.State == state },
		func() string {
			return fmt.Sprintf("link %s is %s, not %s (%s)", name, last.State, state, last.LastError)
		})
}

// metric sums the series of a counter or gauge with all these labels
// (name, value, name, value, ...).
func (w *world) metric(name string, labels ...string) (sum float64) {
	w.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			have := map[string]string{}
			for _, pair := range m.GetLabel() {
				have[pair.GetName()] = pair.GetValue()
			}
			all := true
			for i := 0; i < len(labels); i += 2 {
				all = all && have[labels[i]] == labels[i+1]
			}
			if all {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// sendVia sends n short texts over a carrier to new handsets of a fate.
func (w *world) sendVia(carrier string, n int, fate string) []int64 {
	w.Helper()
	notes := make([]note, n)
	for i := range notes {
		notes[i] = note{to: w.number(fate), carrier: carrier}
	}
	return w.send(notes...)
}

// submitsTo returns the submit_sm that a carrier got for one handset.
func (s *sim) submitsTo(number sms.Number) (list []carriersim.Submit) {
	for _, m := range s.Submits() {
		if m.Destination.Addr == number.Digits() {
			list = append(list, m)
		}
	}
	return list
}

// clean fails the test if the dispatcher violated the protocol or sent a
// segment twice.
func (w *world) clean(carriers ...*sim) {
	w.Helper()
	for _, s := range carriers {
		for _, v := range s.Violations() {
			w.Errorf("%s: %s: %s", s.Name(), v.Command, v.Text)
		}
		if n := s.Stats().Duplicates; n > 0 {
			w.Errorf("%s got %d segments twice", s.Name(), n)
		}
	}
}

// settledAll fails the test if a claim, an outbox row or a used slot is left.
func (w *world) settledAll() {
	w.Helper()
	w.until("the outbox is empty", func() bool { return w.count(`SELECT count(*) FROM outbox`) == 0 })
}

// logBook keeps a log for tests to read.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logBook) has(words ...string) bool {
	text := l.String()
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
