package dispatcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/submission"
	"intumwa/smpp"
)

// inFlight is one claimed message on its way over one link. Its segments go out in
// order. The settler takes their results in any order; only it touches the fields
// after the blank line.
type inFlight struct {
	worker  *linkWorker
	msg     *messages.Claimed
	total   int // segments on the wire
	stopped atomic.Bool
	began   time.Time

	// The settler's, once the first segment is out.
	open    int                 // segments without a committed result
	results []submission.Result // the committed ones, and late refusals
}

func newInFlight(w *linkWorker, m *messages.Claimed) *inFlight {
	return &inFlight{worker: w, msg: m, total: m.Segments}
}

// result is the outcome of one segment.
type result struct {
	message *inFlight
	segment int // from 1; 0: there was none to send
	smpp.Result
	at    time.Time
	slot  bool             // it held a slot
	event submission.Event // of the result; set by heard, or at once if no carrier was involved
}

// heard returns the result as an event of the segment's submission.
func (r *result) heard() submission.Event {
	if r.event == nil {
		r.event = r.message.worker.carrier.config().event(r.Result, r.message.msg.Attempt)
	}
	return r.event
}

// event converts a segment's outcome to an event of its submission. attempt is the
// number of its message's attempt.
func (c *Carrier) event(r smpp.Result, attempt int) submission.Event {
	switch r.Outcome {
	case smpp.Accepted:
		return submission.Answered{Confirms: c.Confirm == ConfirmBySubmit}
	case smpp.Rejected:
		class := c.class(r.Status)
		return submission.Rejected{Permanent: class == smpp.ClassPermanent || class == smpp.ClassUnroutable,
			Unroutable: class == smpp.ClassUnroutable && c.SecondCarrier != "", Reason: r.Status.String(), Delay: c.retryDelay(attempt, rand.Float64())}
	case smpp.NoAnswer:
		return submission.NoAnswer{Delay: ambiguousDelay}
	}
	if field, bad := errors.AsType[*smpp.FieldError](r.Err); bad {
		return submission.Unsendable{Reason: field.Error()}
	}
	return submission.NotWritten{}
}

// begin submits the segments that no carrier has yet. It blocks for window and
// pace. Every segment gets a result, even if ctx ends or the link goes down.
func (m *inFlight) begin(ctx context.Context) {
	w := m.worker
	m.began = time.Now()
	now := postgres.Moment(m.began)
	if !now.Before(m.msg.ExpiresAt) { // it expired while it waited here; walk_outbox ends it
		m.end(submission.NotWritten{})
		return
	}
	submits, err := w.carrier.config().segmentsAs(m.msg, now)
	if err != nil {
		m.end(submission.Unsendable{Reason: err.Error()})
		return
	}
	m.total = len(submits)
	policy := w.carrier.config().OnAmbiguous
	var left []int
	for i := range submits {
		if submission.StateOf(i+1, m.msg.Copies).MayWrite(policy) {
			left = append(left, i)
		}
	}
	if len(left) == 0 { // the carrier has, or may have, them all; the outbox was behind
		m.end(submission.NotWritten{})
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
			w.carrier.settler.take(r)
			continue
		}
		r.slot = true
		err := smpp.ErrNotBound
		if w.d.member.submits() {
			submits[i].Key = submitKey(m.msg.ID, i+1, m.total)
			err = w.bind.Submit(ctx, &submits[i], func(res smpp.Result) {
				r.Result, r.at = res, time.Now()
				m.answered(&r)
				w.carrier.settler.take(r)
			})
		}
		if err != nil {
			m.stopped.Store(true)
			r.Outcome, r.Err, r.at = smpp.NotWritten, err, time.Now()
			w.carrier.settler.take(r)
		} else if submission.StateOf(i+1, m.msg.Copies) == submission.Unanswered {
			w.d.metrics.resent.WithLabelValues(w.carrier.name).Inc()
		}
	}
}

// end ends the attempt before any segment is submitted, by an event of the whole message.
func (m *inFlight) end(e submission.Event) {
	m.open = 1
	m.worker.carrier.settler.take(result{message: m, at: time.Now(), Result: smpp.Result{Outcome: smpp.NotWritten}, event: e})
}

// answered reacts to an answer before it is settled: the link slows down if its carrier
// throttles, the breaker counts, and a refused message sends no further segments.
func (m *inFlight) answered(r *result) {
	w := m.worker
	if next, _ := submission.Next(submission.InFlight, r.heard(), w.carrier.config().OnAmbiguous); next == submission.Waiting || next == submission.Failed {
		m.stopped.Store(true)
	}
	switch r.Outcome {
	case smpp.Accepted:
		w.pace.answered(r.at)
		w.closeBreaker()
	case smpp.Rejected:
		switch w.carrier.config().class(r.Status) {
		case smpp.ClassThrottled:
			// If a retry meets a full queue again while other segments pass, the queue
			// is one handset's. That is no reason to slow the link.
			if r.Status != smpp.StatusMsgQueueFull || m.msg.Attempt == 1 || !w.pace.flowing(r.at) {
				w.pace.throttled(r.at, r.at.Add(-r.Latency))
			}
			w.closeBreaker()
		case smpp.ClassConfiguration:
			if w.breaker.refused(r.at, string(m.msg.Number), r.Status.String()) {
				w.d.metrics.breakerOpen.WithLabelValues(w.carrier.name, w.link).Set(1)
				w.d.log.Error("link stopped: the carrier refuses every message, probably for our settings; messages wait", "event", "link_stopped",
					"carrier", w.carrier.name, "link", w.link, "status", r.Status.String())
			}
		default:
			w.closeBreaker()
		}
	}
}

func (w *linkWorker) closeBreaker() {
	if w.breaker.answered() {
		w.d.metrics.breakerOpen.WithLabelValues(w.carrier.name, w.link).Set(0)
		w.d.log.Info("link resumed: the carrier accepts messages again", "event", "link_resumed", "carrier", w.carrier.name, "link", w.link)
	}
}

// reference is the user_message_reference of a segment: 16 bits with which a receipt
// identifies it even if its response was lost.
func reference(messageID int64, segment int) uint16 { return uint16(messageID*37 + int64(segment)) }
