package dispatcher

import (
	"context"
	"errors"
	"time"

	"intumwa/messages/outbox"
	"intumwa/queue"
)

const (
	// A message counts as lost if it was marked as pushed at least pushSlack before the
	// queue's oldest entry. It is marked, committed, and then pushed.
	pushSlack = 5 * time.Second
	pushLimit = 20_000 // messages that came due again, pushed in one round
)

// heldBy returns the longest time for which each usable lane may have held a message.
func (d *recovery) heldBy(ctx context.Context) (held map[laneKey]*time.Duration, failed error) {
	held = make(map[laneKey]*time.Duration)
	for _, at := range d.usableLanes() {
		oldest, err := d.queue.Oldest(ctx, at.carrier, at.lane)
		if err != nil { // one lane's failure does not stop the others
			d.health.failed(at, err)
			failed = errors.Join(failed, err)
			continue
		}
		oldest += pushSlack
		held[at] = &oldest
	}
	return held, failed
}

// pushDue pushes messages that are due again: retries, and those given back or handed over.
func (d *recovery) pushDue(ctx context.Context) error {
	var carriers []string
	var lanes []int16
	for _, at := range d.usableLanes() {
		carriers, lanes = append(carriers, at.carrier), append(lanes, int16(at.lane))
	}
	if len(lanes) == 0 {
		return nil
	}
	waiting, err := d.store.outbox.Unpushed(ctx, carriers, lanes, pushLimit)
	if err != nil {
		return err
	}
	return d.pushAll(ctx, waiting)
}

func (d *recovery) pushAll(ctx context.Context, waiting []outbox.Waiting) (failed error) {
	groups := make(map[laneKey][]outbox.Waiting)
	for _, w := range waiting {
		at := laneKey{w.Carrier, queue.Lane(w.Lane)}
		groups[at] = append(groups[at], w)
	}
	for at, group := range groups {
		failed = errors.Join(failed, d.push(ctx, at, group))
	}
	return failed
}

// usableLanes returns the usable lanes of the queue.
func (d *recovery) usableLanes() (lanes []laneKey) {
	for _, c := range d.running() {
		for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
			if at := (laneKey{c.name, lane}); d.health.isUsable(at) {
				lanes = append(lanes, at)
			}
		}
	}
	return lanes
}

// push puts messages on one lane of the queue. The walk finds those that the queue
// refuses, as if it had lost them.
func (d *recovery) push(ctx context.Context, at laneKey, group []outbox.Waiting) error {
	items, ids := make([]queue.Item, len(group)), make([]int64, len(group))
	for i, w := range group {
		items[i] = queue.Item{MessageID: w.ID, CompanyID: w.CompanyID, Carrier: w.Carrier, Lane: at.lane}
		ids[i] = w.ID
	}
	// Marked first: a link worker may take an entry at once and needs its row unlocked.
	if err := d.store.outbox.Pushed(ctx, ids); err != nil {
		return err
	}
	if err := d.queue.Push(ctx, items); err != nil {
		d.health.failed(at, err)
		return err
	}
	d.metrics.redelivered.Add(float64(len(items)))
	return nil
}
