package core

import (
	"context"
	"fmt"
	"time"
)

// Task is periodic work on all carriers that one process does for all.
type Task struct {
	Name  string
	Every time.Duration
	Rest  int // it rests so many times its duration, at most RestMost
	Run   func(context.Context) error
	Took  *time.Duration // the part of its duration that counts for the rest; nil: all of it
	Now   func() bool    // reports whether it is due at once; nil: never
	Next  time.Time
}

// TaskSlice is how long a task works in a round on what may be long. The rest follows in the
// next rounds, so that the tasks after it have their turns.
const TaskSlice = 250 * time.Millisecond

// Sliced calls step until no more work is left, or until the time is used up after a step.
func Sliced(within time.Duration, step func() (more bool, err error)) error {
	for start := time.Now(); ; {
		if more, err := step(); err != nil || !more || time.Since(start) >= within {
			return err
		}
	}
}

const (
	// After a round a task rests for its duration times one of these: Worked if the round did useful work, Swept if it
	// only searched for some. So searches take at most 2 % of the time, if each takes less than RestMost / Swept.
	Worked   = 5
	Swept    = 50
	RestMost = 30 * time.Second
)

// RepeatTasks does tasks when they are due, or woken, until ctx ends.
func (c *Core) RepeatTasks(ctx context.Context, lease string, tasks []*Task, wake <-chan struct{}) {
	for _, t := range tasks { // a task that never succeeds counts as overdue from here on
		c.Metrics.Tasks.WithLabelValues(t.Name).SetToCurrentTime()
	}
	Repeat(ctx, c.Log, lease, c.Opts.SweepInterval, wake,
		func(ctx context.Context) error { return c.Round(ctx, lease, tasks) })
}

// Round does the due tasks, if no other process has their lease. Then it resigns the lease, so
// that a process with carriers of its own gets its turn. It returns an error if it cannot get
// the lease or the database is down; it logs a task's own error with the task's name.
func (c *Core) Round(ctx context.Context, lease string, tasks []*Task) error {
	held, err := c.Leases.Acquire(ctx, lease)
	if err != nil || len(held) == 0 {
		return err
	}
	defer c.Leases.Resign(ctx, lease)
	ctx, end := c.Leases.WhileFresh(ctx)
	defer end()
	return c.DoTasks(ctx, tasks)
}

// DoTasks does the due tasks.
func (c *Core) DoTasks(ctx context.Context, tasks []*Task) error {
	for _, t := range tasks {
		start := time.Now()
		if start.Before(t.Next) && (t.Now == nil || !t.Now()) {
			continue
		}
		err := t.Run(ctx)
		rest := t.Every
		if err == nil { // a failed task does not rest for its duration
			took := time.Since(start)
			if t.Took != nil {
				took = *t.Took
			}
			rest = max(rest, min(time.Duration(t.Rest)*took, RestMost))
		}
		t.Next = start.Add(rest - c.Opts.SweepInterval/2) // rounds are not quite regular
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err == nil:
			c.Metrics.Tasks.WithLabelValues(t.Name).SetToCurrentTime()
		case c.away(ctx):
			return fmt.Errorf("task %s: %w", t.Name, err)
		default:
			c.Log.Warn("task fails; retrying", "event", "task_failed", "task", t.Name, "error", err)
		}
	}
	return nil
}

// away reports whether the database is down, as opposed to a failed task.
func (c *Core) away(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.Pool.Ping(ctx) != nil
}
