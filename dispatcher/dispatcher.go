// Package dispatcher submits queued messages to the carriers and settles their
// answers and receipts: queued → carried → settled. It is the back half of the
// gateway and never calls the front half.
//
// # Parts, from the ground up
//
// A file uses only files of its own line and of the lines above it. The type that a part keeps stands in its first
// file, what runs it in its last.
//
//	carriers     carrier (package profile) options · carriers quota
//	ground       core metrics repeat · leases links serving · attempt attempts slots
//	settling     settlement gather arrival change second conclude settler · sandbox cancel unanswered
//	a link       bind breaker pace prefetch queuehealth trace · linkworker deliver echo feeder submitter linkrun
//	membership   member minutes giveup linktable heartbeat
//	recovery     tasks · recovery floor orphans free refill quiet retired failover walk scheduled
//	housekeeping housekeeping holding deadlines purge lowbalance gauges
//	wiring       dispatcher
//
// One message's way: feeder claims it, submitter writes its segments, settler records their answers (change, conclude),
// deliver takes its receipt, and settler records that too.
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
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/inbound/handsets"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/webhooks"
)

// Dispatcher is the back half of one process.
type Dispatcher struct {
	*core
	*recovery
	*housekeeping
	member *member
	health *queueHealth
	binds  linkBinds

	mu           sync.Mutex
	settlers     map[string]*settler // of all carriers since the start
	startSettler func(*settler)      // while Run runs
}

// New checks the options and returns a Dispatcher that is idle until Run. hot is a
// pool of the same database with postgres.Options.BatchUpdates.
func New(pool, hot *pgxpool.Pool, q *queue.Queue, hooks *webhooks.Webhooks, opts Options) (*Dispatcher, error) {
	opts.defaults()
	shared := &core{
		opts: &opts, pool: pool, hot: hot, store: newStores(pool), carrying: newStores(hot), handsets: handsets.New(pool),
		queue: q, webhooks: hooks, log: opts.Log, metrics: newMetrics(opts.Metrics), smpp: smpp.NewMetrics(opts.Metrics),
		leases: newLeases(pool, opts.Log, &opts), carriers: &carriers{all: make(map[string]*carrier)}, inFlight: newInFlightMessages(),
	}
	health := newQueueHealth(q, opts.Log, opts.Metrics)
	d := &Dispatcher{core: shared, recovery: newRecovery(shared, health), housekeeping: &housekeeping{core: shared}, health: health,
		settlers: make(map[string]*settler), binds: linkBinds{byLink: make(map[string]*linkBind)}}
	d.member = d.newMember()
	checked, err := d.check(opts.Carriers)
	if err != nil {
		return nil, err
	}
	d.setCarriers(checked)
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
	for _, c := range d.carriers.set(configs) {
		s := newSettler(d.core, c)
		d.settlers[c.name] = s
		d.metrics.expect(c.name)
		if d.startSettler != nil {
			d.startSettler(s)
		}
	}
	for i := range configs {
		if second := configs[i].SecondCarrier; second != "" {
			for _, why := range secondReasons {
				d.metrics.second.WithLabelValues(configs[i].Name, second, why)
			}
		}
	}
}

// newMember returns this process as a member, which starts link workers.
func (d *Dispatcher) newMember() *member {
	m := newMember(d.leases, d.running, d.newWorker)
	m.gone, m.givenUpTotal = func() { d.deaths.note(); m.kick() }, d.metrics.givenUp // act at once: leases and claims are free
	return m
}

// newWorker returns the worker of a link.
func (d *Dispatcher) newWorker(c *carrier, link *Link) (*linkWorker, error) {
	d.mu.Lock()
	s := d.settlers[c.name]
	d.mu.Unlock()
	w, err := newLinkWorker(d.core, c, s, d.health, link)
	if err == nil {
		w.kick, w.setBind = d.member.kick, d.binds.set
	}
	return w, err
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

// LinkChanged applies at once that an operator pauses or resumes a link, or retires its carrier. Without the call the
// next heartbeat applies it. It never blocks.
func (d *Dispatcher) LinkChanged(string) { d.member.kick() }

// tasks returns the tasks of recovery and of housekeeping, in their order. A failed task does not stop the next. Each of
// the two has its own lease and its own rounds, so that housekeeping delays no message.
func (d *Dispatcher) tasks() (recovery, housekeeping []*task) {
	often, seldom := d.opts.SweepInterval, 10*d.opts.SweepInterval
	walk := &task{name: "walk_outbox", every: often, rest: swept, run: d.walkOutbox, took: &d.walk.read}
	recovery = []*task{
		{name: "free_claims", every: often, rest: swept, run: d.freeClaims, now: d.deaths.unfreed.Load},
		{name: "quiet", every: often, rest: swept, run: func(ctx context.Context) error {
			begin, err := d.lookForQuiet(ctx)
			if begin { // the walk may have up to restMost of rest left
				walk.next = time.Time{}
			}
			return err
		}},
		{name: "retire", every: often, rest: worked, run: d.leaveRetired},
		{name: "readdress", every: seldom, rest: swept, run: d.findStranded},
		walk,
		{name: "push_due", every: often, rest: worked, run: d.pushDue},
		{name: "fail_over", every: often, rest: worked, run: d.failover},
		{name: "fail_back", every: seldom, rest: worked, run: d.takeBack},
	}
	housekeeping = []*task{
		{name: "hold", every: often, rest: worked, run: d.releaseHeld},
		{name: "pay_refunds", every: often, rest: worked, run: d.payOwed},
		{name: "low_balances", every: often, rest: swept, run: d.tellLow},
		{name: "finished_batches", every: often, rest: worked, run: d.tellFinished},
		{name: "end_overdue", every: seldom, rest: worked, run: d.overdue},
		{name: "forget", every: seldom, rest: worked, run: d.forget},
		{name: "purge", every: seldom, rest: worked, run: d.purge},
	}
	return recovery, housekeeping
}

// runTasks does the tasks until ctx ends.
func (d *Dispatcher) runTasks(ctx context.Context) {
	recovery, housekeeping := d.tasks()
	var both sync.WaitGroup
	both.Go(func() { d.repeatTasks(ctx, recoveryLease, recovery, d.deaths.wake) })
	both.Go(func() { d.repeatTasks(ctx, housekeepingLease, housekeeping, nil) })
	both.Wait()
}

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
	d.startSettler = func(s *settler) {
		settlers.Go(func() { s.run(settling) })
		settlers.Go(func() { s.answers.run(settling, d.handsets) })
	}
	for _, s := range d.settlers {
		d.startSettler(s)
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

// Trace passes the redacted PDUs of a link that this process holds to show,
// until ctx ends or show returns an error, which it returns (smpp.Link.Trace).
// For a link held elsewhere it returns ErrNotHeld with the name of the holder,
// for one that no process ever announced ErrNoLink.
func (d *Dispatcher) Trace(ctx context.Context, link string, show func(smpp.TracedPDU) error) error {
	bind := d.binds.get(link)
	if bind == nil {
		return d.holder(ctx, link)
	}
	return bind.Trace(ctx, show)
}
