// Package dispatcher submits queued messages to the carriers and settles their
// answers and receipts: queued → carried → settled. It is the back half of the
// gateway and never calls the front half.
//
// # Parts, from the ground up
//
// A part uses only parts of the lines above it. This package makes and runs them, and has the table of links for
// operators.
//
//	setup (with package profile)
//	core
//	settling
//	links · recovery · housekeeping
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

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/housekeeping"
	"intumwa/dispatcher/links"
	"intumwa/dispatcher/recovery"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/internal/queue"
	"intumwa/smpp"
	"intumwa/webhooks"
)

// Dispatcher is the back half of one process.
type Dispatcher struct {
	core         *core.Core
	recovery     *recovery.Recovery
	housekeeping *housekeeping.Housekeeping
	member       *links.Member
	health       *core.QueueHealth
	binds        linkBinds

	mu           sync.Mutex
	settlers     map[string]*settling.Settler // of all carriers since the start
	startSettler func(*settling.Settler)      // while Run runs
}

// New checks the options and returns a Dispatcher that is idle until Run. hot is a
// pool of the same database with postgres.Options.BatchUpdates.
func New(pool, hot *pgxpool.Pool, q *queue.Queue, hooks *webhooks.Webhooks, opts setup.Options) (*Dispatcher, error) {
	opts.Defaults()
	shared := &core.Core{
		Opts: &opts, Pool: pool, Hot: hot, Store: core.NewStores(pool), Carrying: core.NewStores(hot),
		Handsets: handsets.New(pool),
		Queue:    q, Webhooks: hooks, Log: opts.Log, Metrics: core.NewMetrics(opts.Metrics),
		SMPP:   smpp.NewMetrics(opts.Metrics),
		Leases: core.NewLeases(pool, opts.Log, &opts), Carriers: core.NewCarriers(), InFlight: core.NewInFlightMessages(),
	}
	health := core.NewQueueHealth(q, opts.Log, opts.Metrics)
	d := &Dispatcher{core: shared, recovery: recovery.NewRecovery(shared, health),
		housekeeping: &housekeeping.Housekeeping{Core: shared}, health: health,
		settlers: make(map[string]*settling.Settler), binds: linkBinds{byLink: make(map[string]*links.Bind)}}
	d.member = d.newMember()
	checked, err := d.check(opts.Carriers)
	if err != nil {
		return nil, err
	}
	d.setCarriers(checked)
	return d, nil
}

// check fills in a configuration's defaults and refuses one that cannot work.
func (d *Dispatcher) check(carriers []setup.Carrier) ([]setup.Carrier, error) {
	carriers = slices.Clone(carriers)
	names, linkNames := map[string]bool{}, map[string]bool{}
	for i := range carriers {
		c := &carriers[i]
		if err := c.Defaults(); err != nil {
			return nil, err
		}
		if names[c.Name] {
			return nil, fmt.Errorf("two carriers are called %s", c.Name)
		}
		names[c.Name] = true
		for j := range c.Links {
			link := &c.Links[j]
			if linkNames[link.Name] {
				return nil, fmt.Errorf("two links are called %s", link.Name)
			}
			linkNames[link.Name] = true
			if _, err := links.NewBind(c.Name, link, smpp.Options{Deliver: func(*smpp.Delivery) {},
				Metrics: d.core.SMPP}); err != nil {
				return nil, err
			}
		}
	}
	return carriers, nil
}

// setCarriers applies a checked configuration. Removed carriers keep their settler:
// their answers may still come in.
func (d *Dispatcher) setCarriers(configs []setup.Carrier) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.core.Carriers.Set(configs) {
		s := settling.NewSettler(d.core, c)
		d.settlers[c.Name] = s
		d.core.Metrics.Expect(c.Name)
		if d.startSettler != nil {
			d.startSettler(s)
		}
	}
	for i := range configs {
		if second := configs[i].SecondCarrier; second != "" {
			for _, why := range settling.SecondReasons {
				d.core.Metrics.Second.WithLabelValues(configs[i].Name, second, why)
			}
		}
	}
}

// newMember returns this process as a member, which starts link workers.
func (d *Dispatcher) newMember() *links.Member {
	m := links.NewMember(d.core.Leases, d.core.Running, d.newWorker)
	// act at once: leases and claims are free
	m.Gone, m.GivenUpTotal = func() { d.recovery.Deaths.Note(); m.Kick() }, d.core.Metrics.GivenUp
	return m
}

// newWorker returns the worker of a link.
func (d *Dispatcher) newWorker(c *core.Carrier, link *setup.Link) (*links.Worker, error) {
	d.mu.Lock()
	s := d.settlers[c.Name]
	d.mu.Unlock()
	w, err := links.NewWorker(d.core, c, s, d.health, link)
	if err == nil {
		w.Kick, w.SetBind = d.member.Kick, d.binds.set
	}
	return w, err
}

// Check returns the error with which Reload would refuse a set of carriers.
func (d *Dispatcher) Check(carriers []setup.Carrier) error {
	_, err := d.check(carriers)
	return err
}

// Reload applies another set of carriers. It refuses a set that cannot work as a
// whole and keeps the old one. Links keep their binds if at most their pace or
// window changed. The next heartbeat starts, restarts or ends the others.
func (d *Dispatcher) Reload(carriers []setup.Carrier) error {
	checked, err := d.check(carriers)
	if err != nil {
		return err
	}
	d.setCarriers(checked)
	d.member.Kick()
	return nil
}

// LinkChanged applies at once that an operator pauses or resumes a link, or retires its carrier. Without the call the
// next heartbeat applies it. It never blocks.
func (d *Dispatcher) LinkChanged(string) { d.member.Kick() }

// tasks returns the tasks of recovery and of housekeeping. Each of the two has its own lease and its own rounds, so
// that housekeeping delays no message.
func (d *Dispatcher) tasks() (recovery, housekeeping []*core.Task) {
	return d.recovery.Tasks(), d.housekeeping.Tasks()
}

// runTasks does the tasks until ctx ends.
func (d *Dispatcher) runTasks(ctx context.Context) {
	recovery, housekeeping := d.tasks()
	var both sync.WaitGroup
	both.Go(func() { d.core.RepeatTasks(ctx, core.RecoveryLease, recovery, d.recovery.Deaths.Wake) })
	both.Go(func() { d.core.RepeatTasks(ctx, core.HousekeepingLease, housekeeping, nil) })
	both.Wait()
}

// Run carries messages until ctx ends. Then it takes nothing more, drains the
// windows, unbinds, settles the answers, and gives back its leases and claims.
func (d *Dispatcher) Run(ctx context.Context) error {
	if d.member.Register(ctx) != nil {
		return nil // ctx ended first; nothing has started
	}
	// Settlers outlive the link workers: they write the last answers.
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()
	var settlers sync.WaitGroup
	d.mu.Lock()
	d.startSettler = func(s *settling.Settler) {
		settlers.Go(func() { s.Run(writing) })
		settlers.Go(func() { s.Answers.Run(writing, d.core.Handsets) })
	}
	for _, s := range d.settlers {
		d.startSettler(s)
	}
	d.mu.Unlock()

	var others sync.WaitGroup
	others.Go(func() { d.runTasks(ctx) })
	others.Go(func() { d.recovery.RunScheduled(ctx) })
	others.Go(func() { d.housekeeping.RunGauges(ctx) })
	others.Go(func() { d.health.Run(ctx) })
	others.Go(func() { d.recovery.RunOrphans(ctx) })
	d.member.Run(ctx) // starts and stops the link workers
	others.Wait()

	d.mu.Lock()
	d.startSettler = nil
	d.mu.Unlock()
	stopWriting()
	settlers.Wait()
	d.member.Leave()
	return nil
}

// Trace passes the redacted PDUs of a link that this process holds to show,
// until ctx ends or show returns an error, which it returns (smpp.Link.Trace).
// For a link held elsewhere it returns ErrNotHeld with the name of the holder,
// for one that no process ever announced ErrNoLink.
func (d *Dispatcher) Trace(ctx context.Context, link string, show func(smpp.TracedPDU) error) error {
	bind := d.binds.get(link)
	if bind == nil {
		return holder(ctx, d.core.Pool, link)
	}
	return bind.Trace(ctx, show)
}
