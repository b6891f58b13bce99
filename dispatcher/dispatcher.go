// Package dispatcher carries queued messages to the carriers and settles what
// comes back: queued → carried → settled. It is the back half of the gateway
// and never calls the front half.
//
// # Parts
//
//   - The leases (leases.go): each link is bound, and each task is done, by one process at
//     a time. The others take over from a dead process.
//   - The member (member.go) holds the leases of links and starts and stops their
//     workers.
//   - A link worker (linkworker.go) carries messages over one leased link: it
//     takes from the queue no more than it can soon send (prefetch.go), claims in
//     Postgres, and submits segment by segment.
//   - A settler (settler.go) for each carrier writes the answers and reports of its links,
//     many at a time. The package receipts finds the segment of a receipt.
//   - The queue health (queuehealth.go) decides whether the queue in Redis is
//     usable, for each carrier's lane. While it is not, link workers take straight
//     from Postgres.
//   - The release (scheduled.go) moves scheduled messages to the outbox and the queue when
//     they are due.
//   - The tasks (tasks.go) are done by one process for all: they refill the queue from
//     Postgres, free the claims of dead dispatchers, end messages whose time is
//     over, and so on. Each has a name, an interval and a metric.
//
// # Failures
//
// No message is lost: it stays in the outbox until its last segment's
// answer is committed. A receipt is acknowledged after its commit. While the
// database is away the carrier gets ESME_RMSGQFUL and delivers the receipt again.
//
// A segment may arrive twice if it was written to a carrier and its answer was not
// committed when the link or this process died. Those are never more than the
// link's window, because a slot is given back only after the commit.
package dispatcher

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/inbound/handsets"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/sms"
	"intumwa/webhooks"
)

// Refund is which failed messages are paid back (rule choices 4.6).
type Refund uint8

const (
	RefundUnsubmitted Refund = iota // expired with us, or its handset opted out before; no segment ever accepted by a carrier
	RefundFailed                    // every failed message
	RefundNever
)

// Options configures a Dispatcher.
type Options struct {
	Carriers         []Carrier
	Validity         time.Duration // of a message; default 24 h
	Refund           Refund
	SweepInterval    time.Duration // between two looks for what the queue lacks; default 1 s
	ReceiptRetention time.Duration // of receipts that match no segment; default 7 days
	InboundRetention time.Duration // of messages from handsets; default 30 days
	MessageRetention time.Duration // of messages that are final; 0: no limit
	BodyRetention    time.Duration // of their texts; 0: as long as the messages
	NumberRetention  time.Duration // of whom they went to; 0: as long as they are kept
	StrandedAfter    time.Duration // without a link anywhere a carrier is no more; default 10 min
	Heartbeat        time.Duration // between two reports of the links; leases are renewed twice as often; default 1 s
	DeadAfter        time.Duration // a dispatcher that has not renewed for so long is dead; default deadAfter
	GiveUpAfter      time.Duration // a link whose carrier cannot be reached for so long goes to another dispatcher that would take it; default 10 s
	Rest             time.Duration // and is left to the others for so long; default 1 min
	BreakerPause     time.Duration // of a link whose carrier refuses everything, before it is tried again at first; default 15 s
	Log              *slog.Logger
	Metrics          prometheus.Registerer

	// QuietHours are the quiet hours of companies that have none of their own. QuietCompanies
	// returns the companies that have; nil: none has.
	QuietHours     sms.QuietHours
	QuietCompanies func(context.Context) (map[int64]sms.QuietHours, error)

	// Route returns which carrier takes a number now: messages that wait for a
	// carrier which is no more go there. nil: they wait until they expire.
	Route func(sms.Number) (carrier string, ok bool)
	// Inbound is called when messages from handsets have been stored. It must not
	// block. nil: nothing is called.
	Inbound func()
}

// Dispatcher is one process's back half.
type Dispatcher struct {
	opts     Options
	pool     *pgxpool.Pool
	hot      *pgxpool.Pool
	store    *messages.Store // on pool: looks at much of a table
	carrying *messages.Store // on hot: many rows by their keys
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

	refundsHeld bool                   // another transaction has locked a balance that gets a refund; the task's
	heldSenders map[messages.Hold]bool // the senders that messages were held of when the task looked last

	mu           sync.Mutex
	carriers     map[string]*carrier  // all that were ever configured
	active       []*carrier           // those configured now
	held         map[string]*linkBind // by link: those that this process has at work
	startSettler func(*carrier)       // while Run runs
}

// carrier is a configured carrier at work. Its configuration may be replaced
// while it works (Reload).
type carrier struct {
	name      string
	conf      atomic.Pointer[Carrier]
	settler   *settler
	unmatched quota  // receipts that match nothing
	handsets  quota  // messages from handsets
	standIn   string // failover's: who takes its messages now, for the log
}

func (c *carrier) config() *Carrier { return c.conf.Load() }

func (c *carrier) matcher() *receipts.Matcher { return receipts.New(c.name, c.config().IDFormat) }

// New checks the options and returns a Dispatcher that does nothing until Run.
// hot is a pool of the same database whose connections plan updates of many
// rows by their keys (postgres.Options.BatchUpdates).
func New(pool, hot *pgxpool.Pool, q *queue.Queue, hooks *webhooks.Webhooks, opts Options) (*Dispatcher, error) {
	setDefault(&opts.Validity, 24*time.Hour)
	setDefault(&opts.SweepInterval, time.Second)
	setDefault(&opts.ReceiptRetention, 7*24*time.Hour)
	setDefault(&opts.InboundRetention, 30*24*time.Hour)
	setDefault(&opts.StrandedAfter, 10*time.Minute)
	setDefault(&opts.Heartbeat, time.Second)
	setDefault(&opts.DeadAfter, deadAfter)
	setDefault(&opts.GiveUpAfter, giveUpAfter)
	setDefault(&opts.Rest, restAfter)
	setDefault(&opts.BreakerPause, breakerFirst)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	d := &Dispatcher{
		opts: opts, pool: pool, hot: hot, store: messages.New(pool), carrying: messages.New(hot), handsets: handsets.New(pool),
		queue: q, webhooks: hooks, log: opts.Log,
		metrics: newMetrics(opts.Metrics), smpp: smpp.NewMetrics(opts.Metrics), carriers: make(map[string]*carrier), held: make(map[string]*linkBind),
	}
	d.deaths.wake = make(chan struct{}, 1)
	d.deaths.unfreed.Store(true) // the last holder of the tasks may not have done it
	d.walk = newOutboxWalk()
	d.inFlight = newInFlightMessages()
	d.health = newQueueHealth(d)
	d.member = newMember(d)
	carriers, err := d.check(opts.Carriers)
	if err != nil {
		return nil, err
	}
	d.setCarriers(carriers)
	return d, nil
}

// check fills in the defaults of a configuration and refuses one that cannot
// work.
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
			if _, err := newLinkBind(d, c.Name, link, smpp.Options{Deliver: func(*smpp.Delivery) {}}); err != nil {
				return nil, err
			}
		}
	}
	return carriers, nil
}

// setCarriers puts a checked configuration in force. Carriers that are gone
// keep their settler: answers of theirs may still come in.
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

// running are the configured carriers.
func (d *Dispatcher) running() []*carrier {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.active
}

// removed are carriers that were configured once, while this process lived.
func (d *Dispatcher) removed() []*carrier {
	d.mu.Lock()
	defer d.mu.Unlock()
	var gone []*carrier
	for _, c := range d.carriers {
		if !slices.Contains(d.active, c) {
			gone = append(gone, c)
		}
	}
	return gone
}

// Check reports whether Reload would take a set of carriers, and why not.
func (d *Dispatcher) Check(carriers []Carrier) error {
	_, err := d.check(carriers)
	return err
}

// Reload puts another set of carriers in force. A set that cannot work is
// refused whole and the old one goes on. Links that are as before keep their
// binds, also when only their pace or window changed; the others are started,
// restarted or ended by the next heartbeat.
func (d *Dispatcher) Reload(carriers []Carrier) error {
	checked, err := d.check(carriers)
	if err != nil {
		return err
	}
	d.setCarriers(checked)
	d.member.kick()
	return nil
}

// LinkChanged pauses or resumes links at once, after a notice that an operator
// wants it; without a notice the next heartbeat does. It never
// blocks.
func (d *Dispatcher) LinkChanged(string) { d.member.kick() }

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Run carries messages until ctx ends. Then it takes nothing more, lets the
// windows drain, unbinds, settles what was answered, gives back its leases and
// claims, and returns.
func (d *Dispatcher) Run(ctx context.Context) error {
	if d.member.register(ctx) != nil {
		return nil // ctx ended first; nothing has begun
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

// identity names this process to operators.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
