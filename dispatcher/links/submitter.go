package links

import (
	"context"
	"slices"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/submission"
	"intumwa/smpp"
)

// submitPrefetched submits the prefetched messages, one after another. It chooses
// the next one only when it can go out, so that a later message with precedence
// is not held up.
func (w *Worker) submitPrefetched(ctx context.Context) {
	for {
		if w.Slots.Wait(ctx) != nil || w.ready(ctx) != nil {
			return
		}
		m, err := w.Prefetch.next(ctx)
		if err != nil {
			return
		}
		w.send(ctx, w.Group(m, w.Prefetch.Poll))
	}
}

func (w *Worker) send(ctx context.Context, group []*core.InFlight) {
	if len(group) == 0 {
		_ = core.Sleep(ctx, 200*time.Millisecond) // the caller checks ctx next
	}
	if w.retired.Load() {
		w.giveBack(group, 0)
		return
	}
	for _, m := range group {
		if may, wait := w.breaker.enter(time.Now(), m.Msg.Sender); !may {
			w.giveBack([]*core.InFlight{m}, wait)
			continue
		}
		w.Open.Add(1)
		w.Begin(ctx, m)
	}
}

// submitSingles submits waiting single sends between the segments of a batch's
// message: on a slow link a long one would hold them up for seconds.
func (w *Worker) submitSingles(ctx context.Context) {
	for range singlesBeforeBatch {
		if w.Slots.Wait(ctx) != nil || !w.carries(time.Now()) {
			return
		}
		m := w.Prefetch.pollSingle()
		if m == nil {
			return
		}
		group := w.Group(m, func() *core.InFlight { return nil })
		if len(group) == 0 {
			return
		}
		w.send(ctx, group)
	}
}

// Group returns the messages to submit next: first, and more where that saves statements.
// It marks unmarked claims as begun, several at once, never more than the window has room
// for. Messages that can no longer be marked are not submitted.
func (w *Worker) Group(first *core.InFlight, more func() *core.InFlight) []*core.InFlight {
	group := []*core.InFlight{first}
	if first.Msg.Begun {
		return group
	}
	claims := []messages.Claim{first.Msg.Claim()}
	for len(group) < w.Slots.Left() {
		m := more()
		if m == nil {
			break
		}
		group, claims = append(group, m), append(claims, m.Msg.Claim())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	begun, err := w.Carrying.Outbox.Begin(ctx, w.Leases.ID.Load(), claims)
	if err != nil {
		if n, due := w.notBegun.Due(time.Now()); due {
			w.Log.Warn("messages wait: the database cannot record that they are being submitted", "event",
				"submission_not_recorded", "carrier", w.Carrier.Name, "link", w.link, "count", n, "error", err)
		}
		w.giveBack(group, 0)
		return nil
	}
	if len(begun) < len(group) { // this process was taken for dead; another may have the rest
		isOver := func(m *core.InFlight) bool { return !slices.Contains(begun, m.Msg.ID) }
		w.giveBack(slices.DeleteFunc(slices.Clone(group), func(m *core.InFlight) bool { return !isOver(m) }), 0)
		group = slices.DeleteFunc(group, isOver)
	}
	return group
}

// late handles the answer to a segment that was given up.
func (w *Worker) late(key uint64, r smpp.Result) {
	id, segment, total := core.FromKey(key)
	w.Settler.TakeLate(settling.LateAnswer{Link: w.link, Whose: id, Segment: segment, Total: total, Result: r,
		At: time.Now()})
}

// Begin submits the segments that no carrier has yet. It blocks for window and
// pace. Every segment gets a result, even if ctx ends or the link goes down.
func (w *Worker) Begin(ctx context.Context, m *core.InFlight) {
	m.Began = time.Now()
	now := postgres.Moment(m.Began)
	if !now.Before(m.Msg.ExpiresAt) { // it expired while it waited here; walk_outbox ends it
		w.unsent(m, submission.NotWritten{})
		return
	}
	submits, err := w.Carrier.Config().Segments(m.Msg, w.Opts.OTPKey, now)
	if err != nil {
		w.unsent(m, submission.Unsendable{Reason: err.Error()})
		return
	}
	m.Total = len(submits)
	policy := w.Carrier.Config().OnAmbiguous
	var left []int
	for i := range submits {
		state := submission.StateOf(i+1, len(submits), m.Msg.Records)
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
	m.Open = len(left)
	for n, i := range left {
		if n > 0 && m.Msg.Lane == messages.LaneBatch && !m.Stopped.Load() {
			w.submitSingles(ctx)
		}
		r := core.Result{Message: m, Segment: i + 1}
		if m.Stopped.Load() || w.Slots.Take(ctx) != nil {
			r.Outcome, r.At = smpp.NotWritten, time.Now()
			w.Settler.Take(r)
			continue
		}
		r.Slot = true
		err := smpp.ErrNotBound
		if w.Leases.Submits() {
			submits[i].Key = core.SubmitKey(m.Msg.ID, i+1, m.Total)
			err = w.Bind.Submit(ctx, &submits[i], func(res smpp.Result) {
				r.Result, r.At = res, time.Now()
				w.answered(m, &r)
				w.Settler.Take(r)
			})
		}
		if err != nil {
			m.Stopped.Store(true)
			r.Outcome, r.Err, r.At = smpp.NotWritten, err, time.Now()
			w.Settler.Take(r)
		} else if submission.StateOf(i+1, len(submits), m.Msg.Records) == submission.Unanswered {
			w.Metrics.Resent.WithLabelValues(w.Carrier.Name).Inc()
		}
	}
}

// unsent ends an attempt before any segment is submitted, by an event of the whole message.
func (w *Worker) unsent(m *core.InFlight, e submission.Event) {
	m.Open = 1
	w.Settler.Take(core.Result{Message: m, At: time.Now(), Result: smpp.Result{Outcome: smpp.NotWritten}, Event: e})
}

// answered reacts to an answer before it is settled: the link slows down if its carrier
// throttles, the breaker counts, and a refused message sends no further segments.
func (w *Worker) answered(m *core.InFlight, r *core.Result) {
	switch r.Outcome {
	case smpp.Accepted:
		w.pace.answered(r.At)
		w.breaker.accept(r.At, m.Msg.Sender)
	case smpp.Rejected:
		w.refused(m, r)
	}
	if next, _ := submission.Next(submission.InFlight, r.Heard(),
		w.Carrier.Config().OnAmbiguous); next == submission.Waiting || next == submission.Failed {
		m.Stopped.Store(true)
	}
}

// refused reacts to a refusal. A message that is refused because the carrier is out of order
// waits, whatever the status.
func (w *Worker) refused(m *core.InFlight, r *core.Result) {
	class := w.Carrier.Config().ClassOf(r.Status)
	w.refusals.add(r.Status)
	// If a retry meets a full queue again while other segments pass, the queue is one
	// handset's. That is no reason to slow the link.
	if class == smpp.ClassThrottled && (r.Status != smpp.StatusMsgQueueFull || m.Msg.Attempt == 1 ||
		!w.pace.flowing(r.At)) {
		w.pace.throttled(r.At, r.At.Add(-r.Latency))
	}
	waits, blocked := w.breaker.refuse(refusal{at: r.At, sender: m.Msg.Sender, number: string(m.Msg.Number),
		status: r.Status, class: class, first: m.Msg.Attempt == 1})
	if waits {
		r.Event = w.Carrier.Config().RefusedForNow(r.Status, m.Msg.Attempt)
	}
	if blocked {
		w.Log.Warn("the carrier refuses every message from a sender; they wait, others pass", "event", "sender_held",
			"carrier", w.Carrier.Name, "link", w.link, "sender", m.Msg.Sender, "status", r.Status.String())
	}
}

// showOutage tells operators of a change of the breaker's state.
func (w *Worker) showOutage(was outage) outage {
	now := w.breaker.state(time.Now())
	w.Metrics.SendersBlocked.WithLabelValues(w.Carrier.Name, w.link).Set(float64(now.blocked))
	switch {
	case now.out == was.out:
	case now.out:
		w.Metrics.BreakerOpen.WithLabelValues(w.Carrier.Name, w.link).Set(1)
		w.Log.Error("link stopped: the carrier is bound and accepts nothing; messages wait", "event", "link_stopped",
			"carrier", w.Carrier.Name, "link", w.link, "reason", now.reason)
	default:
		w.Metrics.BreakerOpen.WithLabelValues(w.Carrier.Name, w.link).Set(0)
		w.Log.Info("link resumed: the carrier accepts messages again", "event", "link_resumed", "carrier", w.Carrier.Name,
			"link", w.link)
	}
	return now
}
