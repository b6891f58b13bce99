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
	// A message counts as lost if it was marked as pushed at least pushSlack before the
	// queue's oldest entry. It is marked, committed, and then pushed.
	pushSlack = 5 * time.Second
	pushLimit = 20_000 // messages that came due again, pushed in one round
)

// heldBy returns the longest time for which each usable lane may have held a message.
func (d *Recovery) heldBy(ctx context.Context) (held map[core.LaneKey]*time.Duration, failed error) {
	held = make(map[core.LaneKey]*time.Duration)
	for _, at := range d.usableLanes() {
		oldest, err := d.Queue.Oldest(ctx, at.Carrier, at.Lane)
		if err != nil { // one lane's failure does not stop the others
			d.health.Failed(at, err)
			failed = errors.Join(failed, err)
			continue
		}
		oldest += pushSlack
		held[at] = &oldest
	}
	return held, failed
}

// pushDue pushes messages that are due again: retries, and those given back or handed over.
func (d *Recovery) pushDue(ctx context.Context) error {
	var carriers []string
	var lanes []int16
	for _, at := range d.usableLanes() {
		carriers, lanes = append(carriers, at.Carrier), append(lanes, int16(at.Lane))
	}
	if len(lanes) == 0 {
		return nil
	}
	waiting, err := d.Store.Outbox.Unpushed(ctx, carriers, lanes, pushLimit)
	if err != nil {
		return err
	}
	return d.pushAll(ctx, waiting)
}

func (d *Recovery) pushAll(ctx context.Context, waiting []outbox.Waiting) (failed error) {
	groups := make(map[core.LaneKey][]outbox.Waiting)
	for _, w := range waiting {
		at := core.LaneKey{Carrier: w.Carrier, Lane: queue.Lane(w.Lane)}
		groups[at] = append(groups[at], w)
	}
	for at, group := range groups {
		failed = errors.Join(failed, d.push(ctx, at, group))
	}
	return failed
}

// usableLanes returns the usable lanes of the queue.
func (d *Recovery) usableLanes() (lanes []core.LaneKey) {
	for _, c := range d.Running() {
		for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
			if at := (core.LaneKey{Carrier: c.Name, Lane: lane}); d.health.IsUsable(at) {
				lanes = append(lanes, at)
			}
		}
	}
	return lanes
}

// push puts messages on one lane of the queue. The walk finds those that the queue
// refuses, as if it had lost them.
func (d *Recovery) push(ctx context.Context, at core.LaneKey, group []outbox.Waiting) error {
	items, ids := make([]queue.Item, len(group)), make([]int64, len(group))
	for i, w := range group {
		items[i] = queue.Item{MessageID: w.ID, CompanyID: w.CompanyID, Carrier: w.Carrier, Lane: at.Lane}
		ids[i] = w.ID
	}
	// Marked first: a link worker may take an entry at once and needs its row unlocked.
	if err := d.Store.Outbox.Pushed(ctx, at.Carrier, ids); err != nil {
		return err
	}
	if err := d.Queue.Push(ctx, items); err != nil {
		d.health.Failed(at, err)
		return err
	}
	d.Metrics.Redelivered.Add(float64(len(items)))
	return nil
}
