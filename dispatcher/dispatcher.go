// Package dispatcher submits queued messages to the carriers and settles their
// answers and receipts: queued → carried → settled. It is the back half of the
// gateway and never calls the front half.
//
// # Parts
//
//   - The leases (leases.go) give each link and each kind of task to one process at a
//     time. The others take over from a dead process.
//   - The member (member.go) holds the leases of links and starts and stops their
//     workers.
//   - A link worker (linkworker.go) carries messages over one leased link. It
//     takes from the queue no more than it can soon send (prefetch.go), claims in
//     Postgres, and submits segment by segment.
//   - A settler (settler.go) for each carrier writes the answers and receipts of its
//     links in batches. The package receipts finds the segment of a receipt.
//   - The queue health (queuehealth.go) decides for each carrier's lane whether the
//     queue in Redis is usable. While it is not, link workers take messages straight
//     from Postgres.
//   - The release (scheduled.go) moves due scheduled messages to the outbox and the
//     queue.
//   - The tasks (tasks.go) run in one process for all. Recovery frees the claims of
//     dead dispatchers, refills the queue from Postgres, fails over, and so on.
//     Housekeeping does what may wait. Each task has a name, an interval and a metric.
//
// # Failures
//
// No message is lost: it stays in the outbox until its last segment's
// answer is committed. A receipt is acknowledged after its commit. While the
// database is down the carrier gets ESME_RMSGQFUL and delivers the receipt again.
//
// A segment may arrive twice if the link or this process dies after writing it and
// before committing its answer. A slot is freed only after the commit, so no more
// than the link's window can be affected.
package dispatcher

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/inbound/handsets"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/webhooks"
)

// Dispatcher is the back half of one process.
type Dispatcher struct {
	opts     Options
	pool     *pgxpool.Pool
	hot      *pgxpool.Pool
	store    *messages.Store // on pool: for statements that read much of a table
	carrying *messages.Store // on hot: for many rows by their keys
	handsets *handsets.Store
	queue    *queue.Queue
	webhooks *webhooks.Webhooks
	log      *slog.Logger
	metrics  *metrics
	smpp     *smpp.Metrics
	member   *member
	inFlight *inFlightMessages
	health   *queueHealth
	deaths   deaths
	walk     *outboxWalk

	refundsHeld bool                      // a locked balance delays refunds; only the task uses it
	holding     map[messages.Hold]holding // the progress of the task hold

	mu           sync.Mutex
	carriers     map[string]*carrier  // all configured since the start
	active       []*carrier           // those configured now
	binds        map[string]*linkBind // by link: the running ones
	startSettler func(*carrier)       // while Run runs
}

// carrier is a carrier at work. Reload may replace its configuration.
type carrier struct {
	name      string
	conf      atomic.Pointer[Carrier]
	settler   *settler
	unmatched quota  // receipts that match nothing
	handsets  quota  // MOs
	standIn   string // the carrier that it fails over to now; only failover uses it, for the log
}

func (c *carrier) config() *Carrier { return c.conf.Load() }

func (c *carrier) matcher() *receipts.Matcher { return receipts.New(c.name, c.config().IDFormat) }

// New checks the options and returns a Dispatcher that is idle until Run. hot is a
// pool of the same database with postgres.Options.BatchUpdates.
func New(pool, hot *pgxpool.Pool, q *queue.Queue, hooks *webhooks.Webhooks, opts Options) (*Dispatcher, error) {
	opts.defaults()
	d := &Dispatcher{
		opts: opts, pool: pool, hot: hot, store: messages.New(pool), carrying: messages.New(hot), handsets: handsets.New(pool),
		queue: q, webhooks: hooks, log: opts.Log,
		metrics: newMetrics(opts.Metrics), smpp: smpp.NewMetrics(opts.Metrics), carriers: make(map[string]*carrier), binds: make(map[string]*linkBind),
	}
	d.deaths.wake = make(chan struct{}, 1)
	d.deaths.unfreed.Store(true) // the previous holder of the recovery lease may have left some
	d.walk = newOutboxWalk()
	d.inFlight = newInFlightMessages()
	d.health = newQueueHealth(d)
	d.member = d.newMember()
	carriers, err := d.check(opts.Carriers)
	if err != nil {
		return nil, err
	}
	d.setCarriers(carriers)
	return d, nil
}

// check fills in a configuration's defaults and refuses one that cannot work.
func (d *Dispatcher) check(carriers []Carrier) ([]Carrier, error) {
	carriers = slices.Clone(carriers)
	names, links := map[string]bool{}, map[string]bool{}
	for i := range carriers {
		c := &carriers[i]
		if err := c.defaults(); err != nil {
			return nil, err
		}
		if names[c.Name] {
			return nil, fmt.Errorf("two carriers are called %s", c.Name)
		}
		names[c.Name] = true
		for j := range c.Links {
			link := &c.Links[j]
			if links[link.Name] {
				return nil, fmt.Errorf("two links are called %s", link.Name)
			}
			links[link.Name] = true
			if _, err := newLinkBind(c.Name, link, smpp.Options{Deliver: func(*smpp.Delivery) {}, Metrics: d.smpp}); err != nil {
				return nil, err
			}
		}
	}
	return carriers, nil
}

// setCarriers applies a checked configuration. Removed carriers keep their settler:
// their answers may still come in.
func (d *Dispatcher) setCarriers(configs []Carrier) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.active = d.active[:0:0]
	for i := range configs {
		c := d.carriers[configs[i].Name]
		if c == nil {
			c = &carrier{name: configs[i].Name}
			c.settler = newSettler(d, c)
			d.carriers[c.name] = c
			d.metrics.expect(c.name)
			if d.startSettler != nil {
				d.startSettler(c)
			}
		}
		c.conf.Store(&configs[i])
		if second := configs[i].SecondCarrier; second != "" {
			for _, why := range secondReasons {
				d.metrics.second.WithLabelValues(c.name, second, why)
			}
		}
		d.active = append(d.active, c)
	}
}

// newMember returns this process as a member, which starts link workers.
func (d *Dispatcher) newMember() *member {
	m := newMember(newLeases(d.pool, d.log, &d.opts), d.running, func(c *carrier, link *Link) (*linkWorker, error) { return newLinkWorker(d, c, link) })
	m.gone, m.givenUpTotal = func() { d.deaths.note(); m.kick() }, d.metrics.givenUp // act at once: leases and claims are free
	return m
}

// running returns the configured carriers.
func (d *Dispatcher) running() []*carrier {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.active
}

// Check returns the error with which Reload would refuse a set of carriers.
func (d *Dispatcher) Check(carriers []Carrier) error {
	_, err := d.check(carriers)
	return err
}

// Reload applies another set of carriers. It refuses a set that cannot work as a
// whole and keeps the old one. Links keep their binds if at most their pace or
// window changed. The next heartbeat starts, restarts or ends the others.
func (d *Dispatcher) Reload(carriers []Carrier) error {
	checked, err := d.check(carriers)
	if err != nil {
		return err
	}
	d.setCarriers(checked)
	d.member.kick()
	return nil
}

// LinkChanged applies an operator's pause or resume at once. Without the call the
// next heartbeat applies it. It never blocks.
func (d *Dispatcher) LinkChanged(string) { d.member.kick() }

// Run carries messages until ctx ends. Then it takes nothing more, drains the
// windows, unbinds, settles the answers, and gives back its leases and claims.
func (d *Dispatcher) Run(ctx context.Context) error {
	if d.member.register(ctx) != nil {
		return nil // ctx ended first; nothing has started
	}
	// Settlers outlive the link workers: they write the last answers.
	settling, stopSettling := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSettling()
	var settlers sync.WaitGroup
	d.mu.Lock()
	d.startSettler = func(c *carrier) { settlers.Go(func() { c.settler.run(settling) }) }
	for _, c := range d.carriers {
		d.startSettler(c)
	}
	d.mu.Unlock()

	var others sync.WaitGroup
	others.Go(func() { d.runTasks(ctx) })
	others.Go(func() { d.runScheduled(ctx) })
	others.Go(func() { d.runGauges(ctx) })
	others.Go(func() { d.health.run(ctx) })
	others.Go(func() { d.runOrphans(ctx) })
	d.member.run(ctx) // starts and stops the link workers
	others.Wait()

	d.mu.Lock()
	d.startSettler = nil
	d.mu.Unlock()
	stopSettling()
	settlers.Wait()
	d.member.leave()
	return nil
}

// identity is this process's name for operators.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
