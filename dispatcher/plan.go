package dispatcher

import (
	"cmp"
	"slices"
	"time"

	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// plan is the effect of the answers on their segments: the part of a settling transaction
// that does not depend on receipts.
type plan struct {
	segments []receipts.Segment
	next     []change // of the results, in their order
	finals   []messages.Final
	putBack  []messages.Refused // refused late and temporarily
	done     []int64            // answered late: not to be sent again

	late map[*inFlight]*submission.Effect // of late refusals, for messages in flight
}

// change is the effect of a result on its segment.
type change struct {
	state  submission.State
	effect submission.Effect
}

func (s *settler) plan(w settlement) *plan {
	n := len(w.results)
	p := &plan{segments: make([]receipts.Segment, 0, n), next: make([]change, 0, n), late: make(map[*inFlight]*submission.Effect)}
	policy := s.carrier.config().OnAmbiguous
	for _, a := range w.late {
		s.planLate(p, a, policy)
	}
	for i := range w.results {
		s.planResult(p, &w.results[i], policy)
	}
	return p
}

func (s *settler) planResult(p *plan, r *result, policy submission.Policy) {
	m := r.message
	state, effect := submission.Next(submission.InFlight, r.heard(), policy)
	p.next = append(p.next, change{state, effect})
	if r.segment == 0 { // nothing was to be sent
		return
	}
	segment := receipts.Segment{MessageID: m.msg.ID, Segment: r.segment, Total: m.total, Number: m.msg.Number, Link: m.worker.link, At: r.at}
	switch state {
	case submission.Accepted, submission.Delivered:
		p.segments = append(p.segments, s.accepted(segment, r.MessageID))
	case submission.Unanswered:
		segment.Unanswered, segment.Reference = true, reference(m.msg.ID, r.segment)
		p.segments = append(p.segments, segment)
	}
}

// planLate adds an answer to a segment that was given up as unanswered. If the message is
// to be sent again while another of its segments is out, it waits for that answer. A
// message of a failover carrier belongs to that carrier's settler.
func (s *settler) planLate(p *plan, a lateAnswer, policy submission.Policy) {
	state, effect := submission.Next(submission.Unanswered, s.carrier.config().event(a.Result, 1), policy)
	switch state {
	case submission.Accepted, submission.Delivered:
		p.segments = append(p.segments, s.accepted(receipts.Segment{
			MessageID: a.messageID, Segment: a.segment, Total: a.total, Link: a.link, At: a.at, Late: true,
		}, a.MessageID))
		if a.total == 1 {
			p.done = append(p.done, a.messageID)
		}
	case submission.Failed:
		p.finals = append(p.finals, messages.Final{MessageID: a.messageID, Status: sms.Failed, At: a.at, Reason: effect.Fail})
	case submission.Waiting:
		p.putBack = append(p.putBack, messages.Refused{MessageID: a.messageID, Segment: a.segment, Delay: effect.Delay})
		if m := s.d.inFlight.get(a.messageID); m != nil && m.worker.carrier == s.carrier {
			p.late[m] = &effect
		}
	}
}

// leaveOut drops the segments and retries of messages that have left the carrier.
func (p *plan) leaveOut(gone secondTook) {
	p.segments = slices.DeleteFunc(p.segments, func(one receipts.Segment) bool { return gone.has(one.MessageID) })
	p.putBack = slices.DeleteFunc(p.putBack, func(one messages.Refused) bool { return gone.has(one.MessageID) })
}

// accepted completes the record of a segment that the carrier accepted under an id.
func (s *settler) accepted(segment receipts.Segment, carrierID string) receipts.Segment {
	config := s.carrier.config()
	segment.CarrierID, segment.Confirmed = carrierID, config.Confirm == ConfirmBySubmit
	if !config.NoReference {
		segment.Reference = reference(segment.MessageID, segment.Segment)
	}
	return segment
}

// attempts is the effect of the results on the messages' attempts. It depends on which
// segments a receipt has settled.
type attempts struct {
	of     map[*inFlight]submission.Attempt
	order  []*inFlight
	finals []messages.Final
	ends   messages.Ends

	elsewhere []messages.Failing // those of finals that a second carrier may take
	ended     map[int64]int      // by message: the epochs of finished attempts with all copies recorded
}

func (s *settler) attempts(w settlement, p *plan, settled []receipts.SegmentState) *attempts {
	n := len(w.results)
	a := &attempts{of: make(map[*inFlight]submission.Attempt, n), order: make([]*inFlight, 0, n), finals: p.finals, ended: make(map[int64]int, n),
		ends: messages.Ends{Dispatcher: s.d.member.id.Load(), Carried: make([]messages.Claim, 0, n), Done: slices.Concat(p.done, answeredLate(settled))}}
	for _, claim := range w.returned {
		a.ends.Retries = append(a.ends.Retries, messages.Retry{Claim: claim})
	}
	for i, r := range w.results {
		m, next := r.message, p.next[i]
		one, known := a.of[m]
		if !known {
			one = m.attempt
			one.MayHave = one.MayHave || m.msg.InDoubt || len(m.msg.Accepted)+len(m.msg.Unanswered) > 0
			a.order = append(a.order, m)
		}
		if next.state == submission.Unanswered && reported(settled, m.msg.ID, r.segment) {
			next = change{state: submission.Delivered} // its receipt has come; its verdict is in finals
		}
		a.of[m] = one.Result(next.state, next.effect, r.at)
	}
	for _, m := range a.order {
		a.end(m, cmp.Or(p.late[m], m.late))
	}
	return a
}

// reported reports whether a receipt has settled a segment without an answer.
func reported(settled []receipts.SegmentState, message int64, segment int) bool {
	return slices.ContainsFunc(settled, func(st receipts.SegmentState) bool {
		return st.Unanswered && st.MessageID == message && st.Segment == segment
	})
}

// end records the end of a message's attempt, if it has ended, and the message's failure.
func (a *attempts) end(m *inFlight, late *submission.Effect) {
	one := a.of[m]
	if late != nil {
		one = one.Note(*late, time.Time{})
	}
	if f, failed := one.Failure(); failed {
		a.finals = append(a.finals, messages.Final{MessageID: m.msg.ID, Status: sms.Failed, At: f.At, Reason: f.Reason,
			Claimant: a.ends.Dispatcher, Epoch: m.msg.Epoch})
		if f.Elsewhere {
			a.elsewhere = append(a.elsewhere, messages.Failing{MessageID: m.msg.ID, Reason: f.Reason, Epoch: m.msg.Epoch})
		}
	}
	switch one.End() {
	case submission.Retried:
		delay, counts := one.Retry()
		a.ends.Retries = append(a.ends.Retries, messages.Retry{Claim: m.msg.Claim(), Delay: delay, Counts: counts})
		a.ended[m.msg.ID] = m.msg.Epoch
	case submission.Undecided: // not to be sent again; a receipt, a late refusal or the deadline decides
		a.ends.Unanswered = append(a.ends.Unanswered, m.msg.Claim())
	case submission.Carried:
		a.ends.Carried = append(a.ends.Carried, m.msg.Claim())
		a.ended[m.msg.ID] = m.msg.Epoch
	} // a failed message's outbox row goes with the verdict
}

// answeredLate returns messages whose only segment had no answer until a receipt
// echoed its reference. They must not be sent again.
func answeredLate(states []receipts.SegmentState) (ids []int64) {
	for _, st := range states {
		if st.Unanswered && st.Total == 1 {
			ids = append(ids, st.MessageID)
		}
	}
	return ids
}
