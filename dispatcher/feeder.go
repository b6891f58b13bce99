package dispatcher

import (
	"context"
	"slices"
	"time"

	"intumwa/messages"
	"intumwa/messages/submission"
	"intumwa/queue"
	"intumwa/smpp"
)

// feed keeps the prefetch of one lane filled, from the queue as long as that is
// usable and else from the database.
func (w *linkWorker) feed(ctx context.Context, lane queue.Lane) {
	for {
		if w.ready(ctx) != nil {
			return
		}
		room, err := w.prefetch.waitRoom(ctx, lane)
		if err != nil {
			return
		}
		taken, usable := w.take(ctx, lane, room)
		pause := time.Duration(0)
		if !usable && ctx.Err() == nil {
			start := time.Now()
			if taken = w.takeDirect(ctx, lane, room, 0); len(taken) == 0 {
				// A look that finds nothing reads the whole backlog.
				pause = min(max(directPause, 5*time.Since(start)), 5*time.Second)
			}
		}
		if ctx.Err() != nil {
			w.giveBack(taken)
			return
		}
		rest := w.turnAway(taken)
		w.prefetch.put(lane, rest)
		for len(rest) < len(taken) && w.carrier.settler.behind() { // nothing else bounds how many of a lane are turned away
			if sleep(ctx, 10*time.Millisecond) != nil {
				return
			}
		}
		if pause > 0 && sleep(ctx, pause) != nil {
			return
		}
	}
}

// directPause lies between two looks into the database for messages to take.
const directPause = 200 * time.Millisecond

// takeBlock is how long a take waits for messages: as often is looked for overdue ones.
const takeBlock = 500 * time.Millisecond

// take claims messages from the queue, and overdue messages if the queue has
// no more. usable reports whether the queue is usable.
func (w *linkWorker) take(ctx context.Context, lane queue.Lane, room int) (ms []*inFlight, usable bool) {
	health, at := w.d.health, laneKey{w.carrier.name, lane}
	stillUsable, usable := health.whileUsable(at)
	if !usable {
		return nil, false
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(stillUsable, cancel)()
	ids, err := w.d.queue.Take(waiting, w.carrier.name, lane, room, takeBlock)
	switch {
	case ctx.Err() != nil && len(ids) == 0:
		return nil, true
	case err != nil:
		if stillUsable.Err() == nil {
			health.failed(at, err)
		}
		return nil, false
	}
	look := health.took(at, len(ids), room)
	if len(ids) > 0 {
		ms, err = w.claim(ctx, func(ctx context.Context) ([]*messages.Claimed, error) {
			return w.d.carrying.Claim(ctx, w.d.member.id.Load(), w.carrier.name, ids, w.carrier.config().marks())
		})
		if err != nil {
			// Their rows are unclaimed and overdue soon.
			w.d.log.Error("messages cannot be claimed", "event", "claim_failed", "carrier", w.carrier.name, "link", w.link, "error", err)
			_ = sleep(ctx, 200*time.Millisecond) // feed looks at ctx next
			return nil, true
		}
		// The others are settled, not due, claimed by another process, or were there twice.
		w.d.metrics.stale.WithLabelValues(w.carrier.name).Add(float64(len(ids) - len(ms)))
	}
	if look && ctx.Err() == nil {
		start := time.Now()
		overdue := w.takeDirect(ctx, lane, room-len(ids), overdueAfter)
		pushed := 0
		for _, m := range overdue {
			if m.msg.Pushed {
				pushed++
			}
		}
		health.looked(at, len(overdue), pushed, time.Since(start))
		ms = append(ms, overdue...)
	}
	return ms, true
}

// takeDirect claims messages in the database, without the queue: those that have been
// due for age.
func (w *linkWorker) takeDirect(ctx context.Context, lane queue.Lane, room int, age time.Duration) []*inFlight {
	ms, err := w.claim(ctx, func(ctx context.Context) ([]*messages.Claimed, error) {
		return w.d.store.ClaimDue(ctx, w.d.member.id.Load(), w.carrier.name, int(lane), room, age, w.carrier.config().marks())
	})
	if err != nil {
		w.d.log.Error("messages cannot be claimed directly from the database", "event", "direct_claim_failed", "carrier", w.carrier.name, "link", w.link, "error", err)
	}
	w.d.metrics.direct.WithLabelValues(w.carrier.name, lane.String()).Add(float64(len(ms)))
	return ms
}

// claimTimeout bounds a claim with all that it waits for. A process whose database is
// slower than that loses its leases.
const claimTimeout = 5 * time.Second

// claim runs by, which claims messages, and has them in flight. The end of ctx does not
// stop it.
//
// releaseOrphans waits for claims that are under way, so it releases none of these.
// Another process can get them only when this one was taken for dead, for instance
// because it was frozen here. When this one wakes it submits nothing: begin checks
// member.submits in front of each segment, and the last renewal is too old. The next
// renewal finds the process replaced, and its workers end before it registers anew.
// So a segment goes out twice only if it had passed the check before: those are at most
// a window a link. (While a whole machine is suspended, its monotonic clock stands
// still. Then the check fails with the next renewal only.)
func (w *linkWorker) claim(ctx context.Context, by func(context.Context) ([]*messages.Claimed, error)) ([]*inFlight, error) {
	defer w.d.inFlight.claiming()()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	claimed, err := by(ctx)
	if err != nil {
		signal(w.d.inFlight.failed)
		return nil, err
	}
	ms := make([]*inFlight, len(claimed))
	for i, m := range claimed {
		ms[i] = &inFlight{worker: w, msg: m}
		w.d.inFlight.add(ms[i])
	}
	return ms, nil
}

// turnAway ends the messages whose handsets have opted out since they were accepted, and
// returns the others (rule choices 9.4).
func (w *linkWorker) turnAway(ms []*inFlight) []*inFlight {
	return slices.DeleteFunc(ms, func(m *inFlight) bool {
		if m.msg.OptedOut {
			w.open.Add(1)
			m.attempt.Open = 1
			w.carrier.settler.take(result{message: m, at: time.Now(), Result: smpp.Result{Outcome: smpp.NotWritten}, event: submission.Unsendable{Reason: submission.ReasonOptedOut}})
		}
		return m.msg.OptedOut
	})
}

// giveBack returns messages that were claimed and not begun.
func (w *linkWorker) giveBack(ms []*inFlight) {
	if len(ms) == 0 {
		return
	}
	claims := make([]messages.Claim, len(ms))
	for i, m := range ms {
		claims[i] = m.msg.Claim()
		defer w.d.inFlight.remove(m)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := w.d.carrying.Release(ctx, w.d.member.id.Load(), claims, 0); err != nil {
		// They stay claimed until this process ends. Try through the settler,
		// which does not give up.
		w.carrier.settler.putBack(claims)
	}
}

// prefetchSize is how many claimed messages may wait in each lane: enough
// to keep the link busy over a claim, no more than a quarter of a second.
func prefetchSize(window int, tps float64) int {
	if tps > 0 {
		return min(max(int(tps/4), 1), 500)
	}
	return min(max(2*window, 20), 500)
}
