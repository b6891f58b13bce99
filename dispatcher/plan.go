package dispatcher

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// plan is what one settling transaction changes: the rows that it writes, and
// what the messages' attempts have come to, once that is committed. After a
// failed transaction it is made anew.
type plan struct {
	segments []receipts.Segment
	finals   []messages.Final
	ends     messages.Ends
	putBack  []messages.Refused // refused late, and for now only

	elsewhere map[int64]string // of finals, those for which a second carrier may be asked, and why they fail
	ended     map[int64]int    // the epochs of attempts that are over, all of whose copies are recorded, by message

	attempts map[*inFlight]submission.Attempt
	order    []*inFlight                      // of attempts
	late     map[*inFlight]*submission.Effect // of refusals that came late, of messages in flight
}

func (s *settler) plan(w settlement) plan {
	p := plan{ends: messages.Ends{Dispatcher: s.d.member.id.Load()}, attempts: make(map[*inFlight]submission.Attempt, len(w.results)), elsewhere: make(map[int64]string), ended: make(map[int64]int)}
	for _, claim := range w.returned {
		p.ends.Retries = append(p.ends.Retries, messages.Retry{Claim: claim})
	}
	policy := s.carrier.config().OnAmbiguous
	for _, a := range w.late {
		s.planLate(&p, a, policy)
	}
	for i := range w.results {
		s.planResult(&p, &w.results[i], policy)
	}
	for _, m := range p.order {
		s.planEnd(&p, m)
	}
	return p
}

func (s *settler) planResult(p *plan, r *result, policy submission.Policy) {
	m := r.message
	a, known := p.attempts[m]
	if !known {
		a = m.attempt
		a.MayHave = a.MayHave || m.msg.InDoubt || len(m.msg.Accepted)+len(m.msg.Unanswered) > 0
		p.order = append(p.order, m)
	}
	state, effect, _ := submission.Next(submission.InFlight, r.heard(), policy)
	p.attempts[m] = a.Result(state, effect, r.at)
	segment := receipts.Segment{MessageID: m.msg.ID, Segment: r.segment, Total: m.total, Number: m.msg.Number, Link: m.worker.link, At: r.at}
	switch {
	case r.segment == 0: // nothing was to be sent
	case effect.Record == submission.AsAccepted:
		p.segments = append(p.segments, s.accepted(segment, r.MessageID))
	case effect.Record == submission.AsUnanswered:
		segment.Unanswered, segment.Reference = true, reference(m.msg.ID, r.segment)
		p.segments = append(p.segments, segment)
	}
}

// planEnd adds how the attempt of a message ends, if it does, and that its
// message fails.
func (s *settler) planEnd(p *plan, m *inFlight) {
	a := p.attempts[m]
	if late := cmp.Or(p.late[m], m.late); late != nil {
		a = a.Note(*late, time.Time{})
	}
	if f, failed := a.Failure(); failed {
		p.finals = append(p.finals, messages.Final{MessageID: m.msg.ID, Status: sms.Failed, At: f.At, Reason: f.Reason,
			Claimant: p.ends.Dispatcher, Epoch: m.msg.Epoch})
		if f.Elsewhere {
			p.elsewhere[m.msg.ID], p.ended[m.msg.ID] = f.Reason, m.msg.Epoch
		}
	}
	switch a.End() {
	case submission.Ongoing, submission.Failed: // the outbox row goes with the verdict
		return
	case submission.Held:
		p.ends.Held = append(p.ends.Held, m.msg.Claim()) // not to be sent again; a receipt, a late refusal or the deadline decides
		return
	case submission.Retried:
		delay, counts := a.Retry()
		p.ends.Retries = append(p.ends.Retries, messages.Retry{Claim: m.msg.Claim(), Delay: delay, Counts: counts})
	case submission.Carried:
		p.ends.Carried = append(p.ends.Carried, m.msg.Claim())
	}
	p.ended[m.msg.ID] = m.msg.Epoch
}

// planLate adds an answer to what was given up as unanswered. A message that is
// to be sent again although another of its segments is out goes on when that is
// answered; the message of a stand-in is for its own settler.
func (s *settler) planLate(p *plan, a lateAnswer, policy submission.Policy) {
	_, effect, _ := submission.Next(submission.Unanswered, s.carrier.config().event(a.Result, 1), policy)
	if effect.Record == submission.ReplaceUnanswered {
		p.segments = append(p.segments, s.accepted(receipts.Segment{
			MessageID: a.messageID, Segment: a.segment, Total: a.total, Link: a.link, At: a.at, Late: true,
		}, a.MessageID))
	}
	if effect.Done && a.total == 1 {
		p.ends.Done = append(p.ends.Done, a.messageID)
	}
	if effect.Fail != "" {
		p.finals = append(p.finals, messages.Final{MessageID: a.messageID, Status: sms.Failed, At: a.at, Reason: effect.Fail})
	}
	if effect.Again {
		p.putBack = append(p.putBack, messages.Refused{MessageID: a.messageID, Segment: a.segment, Delay: effect.Delay})
		if m := s.d.inFlight.get(a.messageID); m != nil && m.worker.carrier == s.carrier {
			if p.late == nil {
				p.late = make(map[*inFlight]*submission.Effect)
			}
			p.late[m] = &effect
		}
	}
}

// without leaves out of what is written what concerns messages that are not the
// carrier's any more.
func (p plan) without(gone secondTook) plan {
	if len(gone) == 0 {
		return p
	}
	p.segments = slices.DeleteFunc(slices.Clone(p.segments), func(one receipts.Segment) bool { return gone.has(one.MessageID) })
	p.putBack = slices.DeleteFunc(slices.Clone(p.putBack), func(one messages.Refused) bool { return gone.has(one.MessageID) })
	p.finals, p.ends = gone.fail(p.finals), gone.ends(p.ends)
	p.elsewhere = maps.Clone(p.elsewhere)
	maps.DeleteFunc(p.elsewhere, func(id int64, _ string) bool { return gone.has(id) })
	return p
}

// accepted is a segment that the carrier has taken under an id, to be recorded.
func (s *settler) accepted(segment receipts.Segment, carrierID string) receipts.Segment {
	config := s.carrier.config()
	segment.CarrierID, segment.Confirmed = carrierID, config.Confirm == ConfirmBySubmit
	if !config.NoReference {
		segment.Reference = reference(segment.MessageID, segment.Segment)
	}
	return segment
}
