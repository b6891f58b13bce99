package dispatcher

import (
	"context"
	"slices"
	"time"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/submission"
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
	if w.retired.Load() {
		w.giveBack(group, 0)
		return
	}
	for _, m := range group {
		if may, wait := w.breaker.enter(time.Now(), m.msg.Sender); !may {
			w.giveBack([]*inFlight{m}, wait)
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
	begun, err := w.carrying.outbox.Begin(ctx, w.leases.id.Load(), claims)
	if err != nil {
		if n, due := w.notBegun.Due(time.Now()); due {
			w.log.Warn("messages wait: the database cannot record that they are being submitted", "event", "submission_not_recorded", "carrier", w.carrier.name, "link", w.link, "count", n, "error", err)
		}
		w.giveBack(group, 0)
		return nil
	}
	if len(begun) < len(group) { // this process was taken for dead; another may have the rest
		isOver := func(m *inFlight) bool { return !slices.Contains(begun, m.msg.ID) }
		w.giveBack(slices.DeleteFunc(slices.Clone(group), func(m *inFlight) bool { return !isOver(m) }), 0)
		group = slices.DeleteFunc(group, isOver)
	}
	return group
}

// late handles the answer to a segment that was given up.
func (w *linkWorker) late(key uint64, r smpp.Result) {
	id, segment, total := fromKey(key)
	w.settler.takeLate(lateAnswer{link: w.link, messageID: id, segment: segment, total: total, Result: r, at: time.Now()})
}

// begin submits the segments that no carrier has yet. It blocks for window and
// pace. Every segment gets a result, even if ctx ends or the link goes down.
func (w *linkWorker) begin(ctx context.Context, m *inFlight) {
	m.began = time.Now()
	now := postgres.Moment(m.began)
	if !now.Before(m.msg.ExpiresAt) { // it expired while it waited here; walk_outbox ends it
		w.unsent(m, submission.NotWritten{})
		return
	}
	submits, err := w.carrier.config().segments(m.msg, w.opts.OTPKey, now)
	if err != nil {
		w.unsent(m, submission.Unsendable{Reason: err.Error()})
		return
	}
	m.total = len(submits)
	policy := w.carrier.config().OnAmbiguous
	var left []int
	for i := range submits {
		state := submission.StateOf(i+1, len(submits), m.msg.Copies)
		if state == submission.Unanswered && policy == submission.Fail { // left so under another policy
			w.unsent(m, submission.NoAnswer{})
			return
		}
		if state.MayWrite(policy) {
			left = append(left, i)
		}
	}
	if len(left) == 0 { // the carrier has, or may have, them all; the outbox was behind
		w.unsent(m, submission.NotWritten{})
		return
	}
	m.open = len(left)
	for n, i := range left {
		if n > 0 && m.msg.Lane == messages.LaneBatch && !m.stopped.Load() {
			w.submitSingles(ctx)
		}
		r := result{message: m, segment: i + 1}
		if m.stopped.Load() || w.slots.take(ctx) != nil {
			r.Outcome, r.at = smpp.NotWritten, time.Now()
			w.settler.take(r)
			continue
		}
		r.slot = true
		err := smpp.ErrNotBound
		if w.leases.submits() {
			submits[i].Key = submitKey(m.msg.ID, i+1, m.total)
			err = w.bind.Submit(ctx, &submits[i], func(res smpp.Result) {
				r.Result, r.at = res, time.Now()
				w.answered(m, &r)
				w.settler.take(r)
			})
		}
		if err != nil {
			m.stopped.Store(true)
			r.Outcome, r.Err, r.at = smpp.NotWritten, err, time.Now()
			w.settler.take(r)
		} else if submission.StateOf(i+1, len(submits), m.msg.Copies) == submission.Unanswered {
			w.metrics.resent.WithLabelValues(w.carrier.name).Inc()
		}
	}
}

// unsent ends an attempt before any segment is submitted, by an event of the whole message.
func (w *linkWorker) unsent(m *inFlight, e submission.Event) {
	m.open = 1
	w.settler.take(result{message: m, at: time.Now(), Result: smpp.Result{Outcome: smpp.NotWritten}, event: e})
}

// answered reacts to an answer before it is settled: the link slows down if its carrier
// throttles, the breaker counts, and a refused message sends no further segments.
func (w *linkWorker) answered(m *inFlight, r *result) {
	switch r.Outcome {
	case smpp.Accepted:
		w.pace.answered(r.at)
		w.breaker.accept(r.at, m.msg.Sender)
	case smpp.Rejected:
		w.refused(m, r)
	}
	if next, _ := submission.Next(submission.InFlight, r.heard(), w.carrier.config().OnAmbiguous); next == submission.Waiting || next == submission.Failed {
		m.stopped.Store(true)
	}
}

// refused reacts to a refusal. A message that is refused because the carrier is out of order
// waits, whatever the status.
func (w *linkWorker) refused(m *inFlight, r *result) {
	class := w.carrier.config().ClassOf(r.Status)
	w.refusals.add(r.Status)
	// If a retry meets a full queue again while other segments pass, the queue is one
	// handset's. That is no reason to slow the link.
	if class == smpp.ClassThrottled && (r.Status != smpp.StatusMsgQueueFull || m.msg.Attempt == 1 || !w.pace.flowing(r.at)) {
		w.pace.throttled(r.at, r.at.Add(-r.Latency))
	}
	waits, held := w.breaker.refuse(refusal{at: r.at, sender: m.msg.Sender, number: string(m.msg.Number), status: r.Status, class: class, first: m.msg.Attempt == 1})
	if waits {
		r.event = w.carrier.config().refusedForNow(r.Status, m.msg.Attempt)
	}
	if held {
		w.log.Warn("the carrier refuses every message from a sender; they wait, others pass", "event", "sender_held",
			"carrier", w.carrier.name, "link", w.link, "sender", m.msg.Sender, "status", r.Status.String())
	}
}

// showOutage tells operators of a change of the breaker's state.
func (w *linkWorker) showOutage(was outage) outage {
	now := w.breaker.state(time.Now())
	w.metrics.sendersHeld.WithLabelValues(w.carrier.name, w.link).Set(float64(now.held))
	switch {
	case now.out == was.out:
	case now.out:
		w.metrics.breakerOpen.WithLabelValues(w.carrier.name, w.link).Set(1)
		w.log.Error("link stopped: the carrier is bound and accepts nothing; messages wait", "event", "link_stopped",
			"carrier", w.carrier.name, "link", w.link, "reason", now.reason)
	default:
		w.metrics.breakerOpen.WithLabelValues(w.carrier.name, w.link).Set(0)
		w.log.Info("link resumed: the carrier accepts messages again", "event", "link_resumed", "carrier", w.carrier.name, "link", w.link)
	}
	return now
}
