package dispatcher

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// task is periodic work on all carriers that one process does for all.
type task struct {
	name  string
	every time.Duration
	rest  int // it rests so many times its duration, at most restMost
	run   func(context.Context) error
	took  *time.Duration // the part of its duration that counts for the rest; nil: all of it
	now   func() bool    // reports whether it is due at once; nil: never
	next  time.Time
}

// taskSlice is how long a task works in a round on what may be long. The rest follows in the
// next rounds, so that the tasks after it have their turns.
const taskSlice = 250 * time.Millisecond

// sliced does steps for little over a time, or until there are no more.
func sliced(within time.Duration, step func() (more bool, err error)) error {
	for start := time.Now(); ; {
		if more, err := step(); err != nil || !more || time.Since(start) >= within {
			return err
		}
	}
}

const (
	// worked is the rest of a task whose cost is its useful work, swept that of one
	// that searches for work: searching takes at most 2 % of the time, if a search
	// takes less than restMost / swept.
	worked   = 5
	swept    = 50
	restMost = 30 * time.Second
)

// newTasks returns the tasks in their order. A failed task does not stop the next.
//
// Recovery is what messages wait for: each of its tasks reads or moves a bounded number of
// rows. Housekeeping may have millions of rows to do, and nothing that waits for it is lost or
// late. So each has its own lease and its own rounds.
func (d *Dispatcher) newTasks() (recovery, housekeeping []*task) {
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
		{name: "end_overdue", every: seldom, rest: worked, run: d.overdue},
		{name: "forget", every: seldom, rest: worked, run: d.forget},
		{name: "purge", every: seldom, rest: worked, run: d.purge},
	}
	return recovery, housekeeping
}

// runTasks does the tasks when they are due, until ctx ends.
func (d *Dispatcher) runTasks(ctx context.Context) {
	recovery, housekeeping := d.newTasks()
	var both sync.WaitGroup
	run := func(lease string, tasks []*task, wake <-chan struct{}) {
		for _, t := range tasks { // a task that never succeeds counts as overdue from here on
			d.metrics.tasks.WithLabelValues(t.name).SetToCurrentTime()
		}
		both.Go(func() {
			repeat(ctx, d.log, lease, d.opts.SweepInterval, wake, func(ctx context.Context) error { return d.round(ctx, lease, tasks) })
		})
	}
	run(recoveryLease, recovery, d.deaths.wake)
	run(housekeepingLease, housekeeping, nil)
	both.Wait()
}

// deaths wakes recovery to free the claims of a dispatcher that died.
type deaths struct {
	unfreed atomic.Bool // there may be claims of the dead
	wake    chan struct{}
}

func (d *deaths) note() {
	d.unfreed.Store(true)
	signal(d.wake)
}

// round does the due tasks, if no other process has their lease. Then it resigns the lease, so
// that a process with carriers of its own gets its turn. It returns an error if it cannot get
// the lease or the database is down; it logs a task's own error with the task's name.
func (d *Dispatcher) round(ctx context.Context, lease string, tasks []*task) error {
	held, err := d.member.acquire(ctx, lease)
	if err != nil || len(held) == 0 {
		return err
	}
	defer d.member.resign(ctx, lease)
	ctx, end := d.member.whileFresh(ctx)
	defer end()
	return d.doTasks(ctx, tasks)
}

func (d *Dispatcher) doTasks(ctx context.Context, tasks []*task) error {
	for _, t := range tasks {
		start := time.Now()
		if start.Before(t.next) && (t.now == nil || !t.now()) {
			continue
		}
		err := t.run(ctx)
		rest := t.every
		if err == nil { // a failed task does not rest for its duration
			took := time.Since(start)
			if t.took != nil {
				took = *t.took
			}
			rest = max(rest, min(time.Duration(t.rest)*took, restMost))
		}
		t.next = start.Add(rest - d.opts.SweepInterval/2) // rounds are not quite regular
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err == nil:
			d.metrics.tasks.WithLabelValues(t.name).SetToCurrentTime()
		case d.away(ctx):
			return fmt.Errorf("task %s: %w", t.name, err)
		default:
			d.log.Warn("task fails; retrying", "event", "task_failed", "task", t.name, "error", err)
		}
	}
	return nil
}

// away reports whether the database is down, as opposed to a failed task.
func (d *Dispatcher) away(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return d.pool.Ping(ctx) != nil
}
