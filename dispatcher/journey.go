package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"intumwa/messages"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/sms"
	"intumwa/submission"
)

// journey is one claimed message on its way over one link. Its segments go out
// in order; their results come back in any order and are taken by the
// settler, which alone touches the fields below the line.
type journey struct {
	lane    *lane
	msg     *messages.Claimed
	entry   string // on the queue; "" when it was claimed past it
	total   int    // segments on the wire
	stopped atomic.Bool
	began   time.Time

	// The settler's, once the first segment is out.
	attempt submission.Attempt
	late    *submission.Effect // a segment that the message was claimed without was refused for now
}

// result is what became of one segment.
type result struct {
	journey *journey
	segment int // from 1; 0: none was to be sent
	smpp.Result
	at    time.Time
	slot  bool             // it held a slot
	event submission.Event // what that is, once it was asked (heard)
}

// heard is what the result is to the segment's submission.
func (r *result) heard() submission.Event {
	if r.event == nil {
		r.event = r.journey.lane.carrier.config().event(r.Result, r.journey.msg.Attempt)
	}
	return r.event
}

// event is what the fate of a segment is to its submission. attempt is the
// number of its message's attempt.
func (c *Carrier) event(r smpp.Result, attempt int) submission.Event {
	switch r.Outcome {
	case smpp.Accepted:
		return submission.Answered{Confirms: c.Confirm == ConfirmBySubmit}
	case smpp.Rejected:
		return submission.Rejected{Permanent: c.class(r.Status) == smpp.ClassPermanent, Reason: r.Status.String(), Delay: c.retryDelay(attempt, rand.Float64())}
	case smpp.NoAnswer:
		if errors.Is(r.Err, errEchoed) {
			return submission.Echoed{}
		}
		return submission.NoAnswer{Delay: ambiguousDelay}
	}
	if field, bad := errors.AsType[*smpp.FieldError](r.Err); bad {
		return submission.Unsendable{Reason: field.Error()}
	}
	return submission.NotWritten{}
}

// begin submits the segments that no carrier has yet. It blocks for window and
// pace. Every segment gets a result, also when ctx ends or the link goes down
// in the middle.
func (j *journey) begin(ctx context.Context) {
	l := j.lane
	j.began = time.Now()
	if !j.began.Before(j.msg.ExpiresAt) { // it waited here too long; expire ends it
		j.attempt.Open = 1
		l.carrier.settler.take(result{journey: j, at: j.began, Result: smpp.Result{Outcome: smpp.NotWritten}})
		return
	}
	submits := l.carrier.config().segments(j.msg, j.began)
	if j.total = len(submits); j.total > sms.MaxSegments {
		j.attempt.Open = 1
		l.carrier.settler.take(result{journey: j, at: j.began, Result: smpp.Result{Outcome: smpp.NotWritten,
			Err: &smpp.FieldError{Field: "short_message", Problem: fmt.Sprintf("takes %d segments here, more than %d", j.total, sms.MaxSegments)}}})
		return
	}
	policy := l.carrier.config().OnAmbiguous
	var left []int
	for i := range submits {
		if _, _, mayGo := submission.Next(j.stateOf(i+1), submission.Writing{}, policy); mayGo {
			left = append(left, i)
		}
	}
	j.attempt.Open = len(left)
	if len(left) == 0 { // the carrier has them all, or may have, only the outbox did not know
		j.attempt.Open = 1
		l.carrier.settler.take(result{journey: j, Result: smpp.Result{Outcome: smpp.Accepted}, at: j.began})
		return
	}
	var link *smpp.Link
	// Another process, that knows nothing of this carrier, has freed it although
	// the carrier may have it: that is decided here.
	lost := j.msg.Begun && policy != AmbiguousResend
	for n, i := range left {
		if n > 0 && j.msg.Lane == messages.LaneBatch && !lost && !j.stopped.Load() {
			l.letSinglesPass(ctx)
		}
		r := result{journey: j, segment: i + 1}
		if lost {
			r.Outcome, r.at = smpp.NoAnswer, j.began
			l.carrier.settler.take(r)
			continue
		}
		if j.stopped.Load() || l.slots.take(ctx) != nil {
			r.Outcome, r.at = smpp.NotWritten, time.Now()
			l.carrier.settler.take(r)
			continue
		}
		r.slot = true
		if link == nil { // all segments go over one bind, so that they arrive in order
			link = l.binds.next()
		}
		var err error
		if !l.d.member.fresh() {
			err = smpp.ErrNotBound
		} else {
			submits[i].Key = submitKey(j.msg.ID, i+1, j.total)
			err = link.Submit(ctx, &submits[i], func(res smpp.Result) {
				r.Result, r.at = res, time.Now()
				j.answered(&r)
				l.carrier.settler.take(r)
			})
		}
		if err != nil {
			j.stopped.Store(true)
			r.Outcome, r.Err, r.at = smpp.NotWritten, err, time.Now()
			l.carrier.settler.take(r)
		} else if j.msg.Begun || slices.Contains(j.msg.Unanswered, i+1) {
			l.d.metrics.resent.WithLabelValues(l.carrier.name).Inc()
		}
	}
}

// stateOf is what is known of a segment as the attempt begins.
func (j *journey) stateOf(segment int) submission.State {
	switch {
	case slices.Contains(j.msg.Accepted, segment):
		return submission.Accepted
	case slices.Contains(j.msg.Unanswered, segment):
		return submission.Unanswered
	}
	return submission.Waiting
}

// answered reacts at once to an answer, before it is settled: the link slows
// when its carrier says so, its breaker counts, and no further segment of a
// refused message goes out.
func (j *journey) answered(r *result) {
	l := j.lane
	if _, f, _ := submission.Next(submission.InFlight, r.heard(), l.carrier.config().OnAmbiguous); f.Stop {
		j.stopped.Store(true)
	}
	switch r.Outcome {
	case smpp.Accepted:
		l.pace.answered(r.at)
		l.breakerCloses()
	case smpp.Rejected:
		switch l.carrier.config().class(r.Status) {
		case smpp.ClassThrottled:
			// A queue that is full for one handset, again, while others pass is
			// that handset's, and no reason to slow the link.
			if r.Status != smpp.StatusMsgQueueFull || j.msg.Attempt == 1 || !l.pace.flowing(r.at) {
				l.pace.throttled(r.at, r.at.Add(-r.Latency))
			}
			l.breakerCloses()
		case smpp.ClassConfiguration:
			if l.breaker.refused(r.at, string(j.msg.Number), r.Status.String()) {
				l.d.metrics.breakerOpen.WithLabelValues(l.carrier.name, l.link).Set(1)
				l.d.log.Error("link stopped: the carrier refuses every message for what looks like our settings; messages wait",
					"carrier", l.carrier.name, "link", l.link, "status", r.Status.String())
			}
		default:
			l.breakerCloses()
		}
	}
}

func (l *lane) breakerCloses() {
	if l.breaker.answered() {
		l.d.metrics.breakerOpen.WithLabelValues(l.carrier.name, l.link).Set(0)
		l.d.log.Info("link goes on: the carrier takes messages again", "carrier", l.carrier.name, "link", l.link)
	}
}

// reference is the user_message_reference of a segment: 16 bits by which a
// receipt can name it although its response was lost.
func reference(messageID int64, segment int) uint16 { return uint16(messageID*37 + int64(segment)) }

// ack takes the journey's entry off the queue.
func (j *journey) ack() {
	if j.entry != "" {
		j.lane.d.acker.ack(j.lane.carrier.name, queue.Lane(j.msg.Lane), j.entry)
		j.entry = ""
	}
}
