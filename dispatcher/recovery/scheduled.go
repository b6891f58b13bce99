package recovery

import (
	"context"
	"errors"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/internal/queue"
	"intumwa/messages/outbox"
)

const (
	// releaseAtOnce is how many scheduled messages one statement releases: few enough for
	// single sends to pass between two statements.
	releaseAtOnce = 2_000
	// releaseRest bounds the rest after a step, which is as long as the step. However many
	// messages are due at once, they take at most half of one connection.
	releaseRest = time.Second
	// releaseLeast is the least rest otherwise: another process may be releasing the due ones.
	releaseLeast = 10 * time.Millisecond
	// Each look starts ReleaseBehind before now. Every releaseWhole, where that costs little,
	// one starts from the beginning, for messages that another process was releasing when it
	// died. A message is recorded a few seconds after its request at most, and was not due
	// at the request.
	ReleaseBehind, releaseWhole = time.Minute, 10 * time.Second
	// releaseTask is the release's name among those of the tasks.
	releaseTask = "release"
)

// RunScheduled puts due scheduled messages on the outbox and the queue until ctx ends. All
// dispatchers do so, and no two get the same message. It sleeps until the next is due, but
// at most the sweep interval, because a message scheduled meanwhile may be due earlier.
func (d *Recovery) RunScheduled(ctx context.Context) {
	d.Metrics.Tasks.WithLabelValues(releaseTask).SetToCurrentTime()
	failing := false
	var at Releasing
	for {
		wait, err := d.ReleaseDue(ctx, &at)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			d.Metrics.Tasks.WithLabelValues(releaseTask).SetToCurrentTime()
			if failing {
				d.Log.Info("scheduled messages are released again", "event", "scheduled_released")
			}
		case !failing:
			d.Log.Warn("scheduled messages cannot be released; retrying", "event", "scheduled_not_released", "error", err)
		}
		failing = err != nil
		if core.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// Releasing is one process's progress in releasing.
type Releasing struct {
	After [2]outbox.Due // by lane: those due before are released, except what a look from the beginning finds
	whole time.Time     // the next look from the beginning
}

// ReleaseDue releases some of the due messages, and returns how long to rest: until the next
// is due, at most the sweep interval.
func (d *Recovery) ReleaseDue(ctx context.Context, at *Releasing) (rest time.Duration, err error) {
	start := time.Now()
	whole := start.After(at.whole)
	if whole {
		at.After = [2]outbox.Due{}
	}
	wait, some, now, err := d.Carrying.Outbox.NextRelease(ctx, at.After)
	if whole {
		at.whole = time.Now().Add(min(max(releaseWhole, core.Swept*time.Since(start)), core.RestMost))
	}
	if err != nil {
		return d.Opts.SweepInterval, err
	}
	if !some {
		wait = d.Opts.SweepInterval
	}
	d.Metrics.ScheduledLate.Set(max(-wait, 0).Seconds())
	if wait > 0 { // the next look skips what was released
		behind := outbox.Due{At: now.Add(-ReleaseBehind)}
		at.After = [2]outbox.Due{behind, behind}
		return min(wait, d.Opts.SweepInterval), nil
	}
	more, err := d.release(ctx, at, now)
	switch {
	case err != nil:
		return d.Opts.SweepInterval, err
	case more:
		return min(time.Since(start), releaseRest), nil
	}
	return releaseLeast, nil
}

// release puts due messages on the outbox and the queue, one step per lane, single sends
// first. more reports whether there may be more; now is the database's time.
func (d *Recovery) release(ctx context.Context, at *Releasing, now time.Time) (more bool, failed error) {
	quiet, err := d.quietNow(ctx)
	if err != nil {
		return false, err
	}
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		released, last, err := d.Carrying.Outbox.ReleaseScheduled(ctx, int(lane), releaseAtOnce, quiet, at.After[lane])
		if err != nil {
			return more, errors.Join(failed, err)
		}
		if at.After[lane] = last; len(released) == releaseAtOnce {
			more = true
		} else {
			at.After[lane] = outbox.Due{At: now.Add(-ReleaseBehind)}
		}
		d.Metrics.Released.WithLabelValues(core.LaneNames[lane]).Add(float64(len(released)))
		failed = errors.Join(failed, d.pushReleased(ctx, released))
	}
	return more, failed
}

// pushReleased puts released messages on the queue. Their rows are already marked as pushed,
// so the walk finds a message that does not get there as if the queue had lost it.
func (d *Recovery) pushReleased(ctx context.Context, released []outbox.Released) (failed error) {
	items := make(map[core.LaneKey][]queue.Item)
	for _, m := range released {
		if at := (core.LaneKey{Carrier: m.Carrier, Lane: queue.Lane(m.Lane)}); !m.Postponed {
			items[at] = append(items[at], queue.Item{MessageID: m.ID, CompanyID: m.CompanyID, Carrier: m.Carrier, Lane: at.Lane})
		}
	}
	for at, list := range items {
		if d.health.IsLost(at) {
			continue
		}
		if err := d.Queue.Push(ctx, list); err != nil {
			d.health.Failed(at, err)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
