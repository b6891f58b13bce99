package dispatcher

import (
	"context"
	"errors"
	"time"

	"intumwa/messages"
	"intumwa/queue"
)

const (
	// releaseAtOnce is how many scheduled messages one statement releases: few enough for
	// single sends to pass between two of them.
	releaseAtOnce = 2_000
	// releaseRest bounds the rest after a step, which is as long as the step was: however
	// many are due at the same moment, they take no more than half of one connection.
	releaseRest = time.Second
	// releaseLeast is the least rest otherwise: what is due may be in another process' hand.
	releaseLeast = 10 * time.Millisecond
	// releaseBehind is how far behind the time it is looked for what is due, and
	// releaseWhole how often from the beginning, where that costs little: for what another
	// process had in hand when it died. A message is recorded some seconds after its request
	// came at the most, and its time had not come then.
	releaseBehind, releaseWhole = time.Minute, 10 * time.Second
	// releaseTask is its name beside those of the tasks.
	releaseTask = "release"
)

// runScheduled puts scheduled messages on the outbox and the queue when they are due,
// until ctx ends. Every dispatcher does: none gets what another has. It sleeps until
// the next is due, and looks from time to time, since a message that is scheduled meanwhile
// may be due before.
func (d *Dispatcher) runScheduled(ctx context.Context) {
	d.metrics.tasks.WithLabelValues(releaseTask).SetToCurrentTime()
	failing := false
	var at releasing
	for {
		wait, err := d.releaseDue(ctx, &at)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			d.metrics.tasks.WithLabelValues(releaseTask).SetToCurrentTime()
			if failing {
				d.log.Info("scheduled messages are released again", "event", "scheduled_released")
			}
		case !failing:
			d.log.Warn("scheduled messages cannot be released; retrying", "event", "scheduled_not_released", "error", err)
		}
		failing = err != nil
		if sleep(ctx, wait) != nil {
			return
		}
	}
}

// releasing is how far one process has come in releasing.
type releasing struct {
	after [2]messages.Due // by lane: what is due before was released; what is to be looked at again comes with whole
	whole time.Time       // when it looks from the beginning next
}

// releaseDue releases some of the due messages, and returns how long to rest: until the next
// is, and not longer than the sweep interval.
func (d *Dispatcher) releaseDue(ctx context.Context, at *releasing) (rest time.Duration, err error) {
	start := time.Now()
	whole := start.After(at.whole)
	if whole {
		at.after = [2]messages.Due{}
	}
	wait, some, now, err := d.carrying.NextRelease(ctx, at.after)
	if whole {
		at.whole = time.Now().Add(min(max(releaseWhole, swept*time.Since(start)), restMost))
	}
	if err != nil {
		return d.opts.SweepInterval, err
	}
	if !some {
		wait = d.opts.SweepInterval
	}
	d.metrics.scheduledLate.Set(max(-wait, 0).Seconds())
	if wait > 0 { // the next look need not read again what was released before
		behind := messages.Due{At: now.Add(-releaseBehind)}
		at.after = [2]messages.Due{behind, behind}
		return min(wait, d.opts.SweepInterval), nil
	}
	more, err := d.release(ctx, at, now)
	switch {
	case err != nil:
		return d.opts.SweepInterval, err
	case more:
		return min(time.Since(start), releaseRest), nil
	}
	return releaseLeast, nil
}

// release puts due messages on the outbox and the queue, a step of each lane, single
// sends first. more reports that there may be more; now is the database's time.
func (d *Dispatcher) release(ctx context.Context, at *releasing, now time.Time) (more bool, failed error) {
	quiet, err := d.quietNow(ctx)
	if err != nil {
		return false, err
	}
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		released, last, err := d.carrying.ReleaseScheduled(ctx, int(lane), releaseAtOnce, quiet, at.after[lane])
		if err != nil {
			return more, errors.Join(failed, err)
		}
		if at.after[lane] = last; len(released) == releaseAtOnce {
			more = true
		} else {
			at.after[lane] = messages.Due{At: now.Add(-releaseBehind)}
		}
		d.metrics.released.WithLabelValues(laneNames[lane]).Add(float64(len(released)))
		failed = errors.Join(failed, d.pushReleased(ctx, released))
	}
	return more, failed
}

// pushReleased puts released messages on the queue. Their rows are marked as pushed already:
// a message that does not get there is found as if the queue had lost it.
func (d *Dispatcher) pushReleased(ctx context.Context, released []messages.Released) (failed error) {
	items := make(map[laneKey][]queue.Item)
	for _, m := range released {
		if at := (laneKey{m.Carrier, queue.Lane(m.Lane)}); !m.Postponed {
			items[at] = append(items[at], queue.Item{MessageID: m.ID, CompanyID: m.CompanyID, Carrier: m.Carrier, Lane: at.lane})
		}
	}
	for at, list := range items {
		if d.health.isLost(at) {
			continue
		}
		if err := d.queue.Push(ctx, list); err != nil {
			d.health.failed(at, err)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
