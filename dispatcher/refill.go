package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"intumwa/messages"
	"intumwa/queue"
)

const (
	// pushSlack is how long ago a message must have been pushed before it is asked
	// whether the queue still has it.
	pushSlack = 5 * time.Second
	pushLimit = 20_000 // messages that came due again, pushed in one round
	// reclaimIdle exceeds the time for which an entry is rightly held: a full
	// prefetch before a carrier that does not answer.
	reclaimIdle = 10 * time.Minute
)

// watermarks are how far consumers have come with each lane of the queue that is
// usable: of the others nothing is missing, their messages are taken from Postgres.
//
// A stream hands out in the order in which it was filled, so whatever was
// pushed before the oldest entry that still waits, and is neither claimed nor
// done, is not on the queue any more. Clocks are compared, not trusted: the
// queue's watermarks are in Redis' time, pushed_at is in Postgres'.
func (d *Dispatcher) watermarks(ctx context.Context) (map[laneKey]*messages.Watermarks, error) {
	lanes := d.usableLanes()
	if len(lanes) == 0 {
		return nil, nil
	}
	redisNow, err := d.queue.Now(ctx)
	if err != nil {
		for _, at := range lanes {
			d.health.failed(at.carrier, at.lane, err)
		}
		return nil, err
	}
	var now time.Time
	if err := d.pool.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
		return nil, fmt.Errorf("asking the database for the time: %w", err)
	}
	ahead := redisNow.Sub(now)
	unknown := now.Add(-pushSlack)
	found := make(map[laneKey]*messages.Watermarks, len(lanes))
	var failed error // one lane's failure does not stop the others
	for _, at := range lanes {
		marks, err := d.queue.Watermarks(ctx, at.carrier, at.lane)
		if err != nil {
			d.health.failed(at.carrier, at.lane, err)
			failed = errors.Join(failed, err)
			continue
		}
		until := make(map[int64]time.Time, len(marks))
		for company, mark := range marks {
			until[company] = unknown
			if delivered := mark.Delivered.Add(-ahead - pushSlack); !mark.Empty && !delivered.After(now) { // an entry with a future time was not written by us
				until[company] = delivered
			}
		}
		found[at] = &messages.Watermarks{Until: until, Unknown: unknown}
	}
	return found, failed
}

// pushDue pushes what came due again: retries, and what was given back or handed
// over.
func (d *Dispatcher) pushDue(ctx context.Context) error {
	var carriers []string
	var lanes []int16
	for _, at := range d.usableLanes() {
		carriers, lanes = append(carriers, at.carrier), append(lanes, int16(at.lane))
	}
	if len(lanes) == 0 {
		return nil
	}
	waiting, err := d.store.Unpushed(ctx, carriers, lanes, pushLimit)
	if err != nil {
		return err
	}
	return d.pushAll(ctx, waiting)
}

func (d *Dispatcher) pushAll(ctx context.Context, waiting []messages.Waiting) (failed error) {
	groups := make(map[laneKey][]messages.Waiting)
	for _, w := range waiting {
		at := laneKey{w.Carrier, queue.Lane(w.Lane)}
		groups[at] = append(groups[at], w)
	}
	for at, group := range groups {
		failed = errors.Join(failed, d.push(ctx, at, group))
	}
	return failed
}

// usableLanes are the lanes of the queue that can be used.
func (d *Dispatcher) usableLanes() (lanes []laneKey) {
	for _, c := range d.running() {
		for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
			if d.health.isUsable(c.name, lane) {
				lanes = append(lanes, laneKey{c.name, lane})
			}
		}
	}
	return lanes
}

// push puts messages on one lane of the queue.
func (d *Dispatcher) push(ctx context.Context, at laneKey, group []messages.Waiting) error {
	items, ids := make([]queue.Item, len(group)), make([]int64, len(group))
	for i, w := range group {
		items[i] = queue.Item{MessageID: w.ID, CompanyID: w.CompanyID, Carrier: w.Carrier, Lane: queue.Lane(w.Lane)}
		ids[i] = w.ID
	}
	// Noted first: a link worker that takes an entry at once must not find its row
	// locked.
	if err := d.store.Pushed(ctx, ids); err != nil {
		return err
	}
	if err := d.queue.Push(ctx, items); err != nil {
		d.health.failed(at.carrier, at.lane, err)
		return errors.Join(err, d.store.NotPushed(ctx, ids))
	}
	d.metrics.redelivered.Add(float64(len(items)))
	return nil
}

// reclaim removes entries that a dead consumer left pending. Their rows
// are the walk's business, so they are not carried from here.
func (d *Dispatcher) reclaim(ctx context.Context) error {
	for _, at := range d.usableLanes() {
		entries, err := d.queue.Reclaim(ctx, at.carrier, at.lane, "tasks", reclaimIdle, 1000)
		if err != nil {
			d.health.failed(at.carrier, at.lane, err) // the link workers do without it
		}
		for _, e := range entries {
			d.acker.ack(at.carrier, at.lane, e.ID)
		}
	}
	return nil
}
