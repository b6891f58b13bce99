package dispatcher

import (
	"context"
	"fmt"
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

// sliced calls step until no more work is left, or until the time is used up after a step.
func sliced(within time.Duration, step func() (more bool, err error)) error {
	for start := time.Now(); ; {
		if more, err := step(); err != nil || !more || time.Since(start) >= within {
			return err
		}
	}
}

const (
	// After a round a task rests for its duration times one of these: worked if the round did useful work, swept if it
	// only searched for some. So searches take at most 2 % of the time, if each takes less than restMost / swept.
	worked   = 5
	swept    = 50
	restMost = 30 * time.Second
)

// repeatTasks does tasks when they are due, or woken, until ctx ends.
func (c *core) repeatTasks(ctx context.Context, lease string, tasks []*task, wake <-chan struct{}) {
	for _, t := range tasks { // a task that never succeeds counts as overdue from here on
		c.metrics.tasks.WithLabelValues(t.name).SetToCurrentTime()
	}
	repeat(ctx, c.log, lease, c.opts.SweepInterval, wake, func(ctx context.Context) error { return c.round(ctx, lease, tasks) })
}

// round does the due tasks, if no other process has their lease. Then it resigns the lease, so
// that a process with carriers of its own gets its turn. It returns an error if it cannot get
// the lease or the database is down; it logs a task's own error with the task's name.
func (c *core) round(ctx context.Context, lease string, tasks []*task) error {
	held, err := c.leases.acquire(ctx, lease)
	if err != nil || len(held) == 0 {
		return err
	}
	defer c.leases.resign(ctx, lease)
	ctx, end := c.leases.whileFresh(ctx)
	defer end()
	return c.doTasks(ctx, tasks)
}

// doTasks does the due tasks.
func (c *core) doTasks(ctx context.Context, tasks []*task) error {
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
		t.next = start.Add(rest - c.opts.SweepInterval/2) // rounds are not quite regular
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err == nil:
			c.metrics.tasks.WithLabelValues(t.name).SetToCurrentTime()
		case c.away(ctx):
			return fmt.Errorf("task %s: %w", t.name, err)
		default:
			c.log.Warn("task fails; retrying", "event", "task_failed", "task", t.name, "error", err)
		}
	}
	return nil
}

// away reports whether the database is down, as opposed to a failed task.
func (c *core) away(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.pool.Ping(ctx) != nil
}
