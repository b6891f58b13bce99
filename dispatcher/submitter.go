package dispatcher

import (
	"context"
	"slices"
	"time"

	"intumwa/messages"
	"intumwa/smpp"
)

// submitPrefetched submits the prefetched messages, one after another. It chooses
// the next one only when it can go out, so that a later message with precedence
// is not held up.
func (w *linkWorker) submitPrefetched(ctx context.Context) {
	for {
		if w.slots.wait(ctx) != nil || w.ready(ctx) != nil {
			return
		}
		m, err := w.prefetch.next(ctx)
		if err != nil {
			return
		}
		w.send(ctx, w.group(m, w.prefetch.poll))
	}
}

func (w *linkWorker) send(ctx context.Context, group []*inFlight) {
	if len(group) == 0 {
		_ = sleep(ctx, 200*time.Millisecond) // the caller checks ctx next
	}
	for _, m := range group {
		if !w.breaker.enter(time.Now()) {
			w.giveBack([]*inFlight{m})
			continue
		}
		w.open.Add(1)
		w.begin(ctx, m)
	}
}

// submitSingles submits waiting single sends between the segments of a batch's
// message: on a slow link a long one would hold them up for seconds.
func (w *linkWorker) submitSingles(ctx context.Context) {
	for range singlesBeforeBatch {
		if w.slots.wait(ctx) != nil || !w.carries(time.Now()) {
			return
		}
		m := w.prefetch.pollSingle()
		if m == nil {
			return
		}
		group := w.group(m, func() *inFlight { return nil })
		if len(group) == 0 {
			return
		}
		w.send(ctx, group)
	}
}

// marks reports whether a claim is marked as begun before its first segment is submitted.
// It is if ambiguous segments are not sent again (on_ambiguous), or if the carrier has a
// second carrier.
func (c *Carrier) marks() bool { return c.OnAmbiguous.Marks(c.SecondCarrier != "") }

// group returns the messages to submit next: first, and more where that saves statements.
// It marks unmarked claims as begun, several at once, never more than the window has room
// for. Messages that can no longer be marked are not submitted.
func (w *linkWorker) group(first *inFlight, more func() *inFlight) []*inFlight {
	group := []*inFlight{first}
	if first.msg.Begun {
		return group
	}
	claims := []messages.Claim{first.msg.Claim()}
	for len(group) < w.slots.left() {
		m := more()
		if m == nil {
			break
		}
		group, claims = append(group, m), append(claims, m.msg.Claim())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	begun, err := w.carrying.Begin(ctx, w.leases.id.Load(), claims)
	if err != nil {
		if n, due := w.notBegun.Due(time.Now()); due {
			w.log.Warn("messages wait: the database cannot record that they are being submitted", "event", "submission_not_recorded", "carrier", w.carrier.name, "link", w.link, "count", n, "error", err)
		}
		w.giveBack(group)
		return nil
	}
	if len(begun) < len(group) { // this process was taken for dead; another may have the rest
		isOver := func(m *inFlight) bool { return !slices.Contains(begun, m.msg.ID) }
		w.giveBack(slices.DeleteFunc(slices.Clone(group), func(m *inFlight) bool { return !isOver(m) }))
		group = slices.DeleteFunc(group, isOver)
	}
	return group
}

// late handles the answer to a segment that was given up.
func (w *linkWorker) late(key uint64, r smpp.Result) {
	id, segment, total := fromKey(key)
	w.settler.takeLate(lateAnswer{link: w.link, messageID: id, segment: segment, total: total, Result: r, at: time.Now()})
}
