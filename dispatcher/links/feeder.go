package links

import (
	"context"
	"slices"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/internal/queue"
	"intumwa/messages/outbox"
	"intumwa/messages/submission"
)

// feed keeps the prefetch of one lane filled, from the queue while it is usable,
// otherwise from the database.
func (w *Worker) feed(ctx context.Context, lane queue.Lane) {
	for {
		if w.ready(ctx) != nil {
			return
		}
		room, err := w.Prefetch.waitRoom(ctx, lane)
		if err != nil {
			return
		}
		taken, usable := w.Take(ctx, lane, room)
		pause := time.Duration(0)
		if !usable && ctx.Err() == nil {
			start := time.Now()
			if taken = w.TakeDirect(ctx, lane, room, 0); len(taken) == 0 {
				// A query that finds nothing reads the whole backlog.
				pause = min(max(directPause, 5*time.Since(start)), 5*time.Second)
			}
		}
		if ctx.Err() != nil {
			w.giveBack(taken, 0)
			return
		}
		rest := w.turnAway(taken)
		rest, pausing := w.putOff(rest)
		w.Prefetch.put(lane, rest)
		pause = max(pause, pausing)
		for len(rest) < len(taken) && w.Settler.Behind() { // nothing else bounds the rate of turning messages away
			if core.Sleep(ctx, 10*time.Millisecond) != nil {
				return
			}
		}
		if pause > 0 && core.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// directPause is the pause between queries for messages to take from the database.
const directPause = 200 * time.Millisecond

// takeBlock is how long a take waits for messages, and so how often it seeks overdue ones.
const takeBlock = 500 * time.Millisecond

// Take claims messages from the queue, and overdue ones if the queue has no more.
// usable reports whether the queue is usable.
func (w *Worker) Take(ctx context.Context, lane queue.Lane, room int) (ms []*core.InFlight, usable bool) {
	health, at := w.health, core.LaneKey{Carrier: w.Carrier.Name, Lane: lane}
	stillUsable, usable := health.WhileUsable(at)
	if !usable {
		return nil, false
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(stillUsable, cancel)()
	ids, err := w.Queue.Take(waiting, w.Carrier.Name, lane, room, takeBlock)
	switch {
	case ctx.Err() != nil && len(ids) == 0:
		return nil, true
	case err != nil:
		if stillUsable.Err() == nil {
			health.Failed(at, err)
		}
		return nil, false
	}
	look := health.Took(at, len(ids), room)
	if len(ids) > 0 {
		ms, err = w.claim(ctx, func(ctx context.Context) ([]*outbox.Claimed, error) {
			return w.Carrying.Outbox.Claim(ctx, w.Leases.ID.Load(), w.Carrier.Name, ids, w.Carrier.Config().Marks())
		})
		if err != nil {
			// The rows of the others stay unclaimed and are soon overdue.
			w.Log.Error("messages cannot be claimed", "event", "claim_failed", "carrier", w.Carrier.Name, "link", w.link,
				"error", err)
			_ = core.Sleep(ctx, 200*time.Millisecond) // feed looks at ctx next
			return ms, true
		}
		// The others are settled, not due, claimed elsewhere, or duplicates.
		w.Metrics.Stale.WithLabelValues(w.Carrier.Name).Add(float64(len(ids) - len(ms)))
	}
	if look && ctx.Err() == nil {
		start := time.Now()
		overdue := w.TakeDirect(ctx, lane, room-len(ids), core.OverdueAfter)
		pushed := 0
		for _, m := range overdue {
			if m.Msg.Pushed {
				pushed++
			}
		}
		health.Looked(at, len(overdue), pushed, time.Since(start))
		ms = append(ms, overdue...)
	}
	return ms, true
}

// TakeDirect claims messages that have been due for age, straight from the database.
func (w *Worker) TakeDirect(ctx context.Context, lane queue.Lane, room int, age time.Duration) []*core.InFlight {
	ms, err := w.claim(ctx, func(ctx context.Context) ([]*outbox.Claimed, error) {
		return w.Store.Outbox.ClaimDue(ctx, w.Leases.ID.Load(), w.Carrier.Name, int(lane), room, age,
			w.Carrier.Config().Marks())
	})
	if err != nil {
		w.Log.Error("messages cannot be claimed directly from the database", "event", "direct_claim_failed", "carrier",
			w.Carrier.Name, "link", w.link, "error", err)
	}
	w.Metrics.Direct.WithLabelValues(w.Carrier.Name, lane.String()).Add(float64(len(ms)))
	return ms
}

// claimTimeout bounds a claim, including waiting. A process whose database is slower
// loses its leases.
const claimTimeout = 5 * time.Second

// claim runs by, which claims messages, and adds them to those in flight. The end of ctx
// does not stop it. With an error it returns those that were claimed all the same.
//
// Recovery.ReleaseOrphans waits for running claims, so it releases none of these. Another process
// can get them only if it takes this one for dead, for instance because it was frozen
// here. When this one wakes it submits nothing: begin checks member.submits before each
// segment, and the last renewal is too old. The next renewal finds the process replaced,
// and its workers end before it registers again. So a segment goes out twice only if it
// had already passed the check: at most a window per link. (While a whole machine is
// suspended, its monotonic clock stops. Then the check fails only at the next renewal.)
func (w *Worker) claim(ctx context.Context, by func(context.Context) ([]*outbox.Claimed, error)) ([]*core.InFlight,
	error) {
	defer w.InFlight.Claiming()()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	start := time.Now()
	claimed, err := by(ctx)
	w.claimTook.Store(int64(time.Since(start)))
	if err != nil {
		core.Signal(w.InFlight.Failed)
	}
	ms := make([]*core.InFlight, len(claimed))
	for i, m := range claimed {
		ms[i] = w.Attempt(m)
		w.InFlight.Add(ms[i])
	}
	if err != nil {
		unread := func(m *core.InFlight) bool { return m.Msg.Unread }
		w.giveBack(slices.DeleteFunc(slices.Clone(ms), func(m *core.InFlight) bool { return !unread(m) }), 0)
		ms = slices.DeleteFunc(ms, unread)
	}
	return ms, err
}

// Attempt returns a claimed message as one in flight on the link.
func (w *Worker) Attempt(m *outbox.Claimed) *core.InFlight {
	return &core.InFlight{Carrier: w.Carrier, Link: w.link, Slots: w.Slots, Unsettled: &w.Open, Msg: m, Total: m.Segments}
}

// turnAway fails the messages whose handsets have opted out since acceptance, and
// returns the others (rule choices 9.4).
func (w *Worker) turnAway(ms []*core.InFlight) []*core.InFlight {
	return slices.DeleteFunc(ms, func(m *core.InFlight) bool {
		if m.Msg.OptedOut {
			w.Open.Add(1)
			w.unsent(m, submission.Unsendable{Reason: submission.ReasonOptedOut})
		}
		return m.Msg.OptedOut
	})
}

// putOff gives back the messages of senders that the breaker blocks, and returns the others. pause
// keeps it from taking messages faster than twice the link's pace.
func (w *Worker) putOff(ms []*core.InFlight) (rest []*core.InFlight, pause time.Duration) {
	now := time.Now()
	var wait time.Duration
	var blocked []*core.InFlight
	rest = slices.DeleteFunc(ms, func(m *core.InFlight) bool {
		longer := w.breaker.blocks(now, m.Msg.Sender)
		if longer > 0 {
			wait, blocked = max(wait, longer), append(blocked, m)
		}
		return longer > 0
	})
	if len(blocked) == 0 {
		return rest, 0
	}
	w.giveBack(blocked, wait)
	rate := max(2*w.Bind.Snapshot().TPS, putOffLeast)
	return rest, time.Duration(float64(len(blocked)) / rate * float64(time.Second))
}

// putOffLeast is the least rate per second at which blocked messages are put off.
const putOffLeast = 200
