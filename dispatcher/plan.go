package dispatcher

import (
	"errors"
	"math/rand/v2"
	"time"

	"intumwa/messages"
	"intumwa/smpp"
	"intumwa/sms"
)

// plan is what a lot changes, worked out from the results before the
// transaction so that it can be tried again.
type plan struct {
	parts   []messages.Part
	finals  []messages.Final
	carried []int64
	held    []int64
	retries []messages.Retry
	refused []messages.Refused // late, and for now only
}

func (s *settler) plan(w work) plan {
	var p plan
	for _, claim := range w.returned {
		p.retries = append(p.retries, messages.Retry{Claim: claim})
	}
	for _, a := range w.late {
		s.planLate(&p, a)
	}
	after := map[*journey]*journey{} // each journey as this lot leaves it
	var order []*journey
	for _, r := range w.results {
		j := after[r.journey]
		if j == nil {
			j = r.journey.copy()
			after[r.journey] = j
			order = append(order, j)
		}
		j.apply(r)
		if r.Outcome == smpp.Accepted && r.segment > 0 {
			p.parts = append(p.parts, s.accepted(j.lane.link, j.msg.ID, r.segment, j.total, r.MessageID, r.at))
		}
		if r.Outcome == smpp.NoAnswer {
			p.parts = append(p.parts, messages.Part{
				MessageID: j.msg.ID, Segment: r.segment, Total: j.total, Carrier: s.carrier.name, Link: j.lane.link,
				At: r.at, Unanswered: true, Reference: reference(j.msg.ID, r.segment),
			})
		}
	}
	for _, r := range p.refused {
		if j := after[s.d.hands.of(r.MessageID)]; j != nil {
			j.repeat(r.Delay, true)
		}
	}
	for _, j := range order {
		if j.refused {
			p.finals = append(p.finals, j.verdict)
		}
		switch {
		case j.open > 0:
		case j.refused: // its outbox row goes with the verdict
		case j.again:
			p.retries = append(p.retries, messages.Retry{Claim: j.msg.Claim(), Delay: j.delay, Counts: j.counts || j.accepted > 0})
		case j.wait:
			p.held = append(p.held, j.msg.ID) // no longer ours to send; a receipt, a late refusal or the deadline decides
		default:
			p.carried = append(p.carried, j.msg.ID)
		}
	}
	return p
}

// accepted is a segment that the carrier has taken, to be recorded.
func (s *settler) accepted(link string, messageID int64, segment, total int, carrierID string, at time.Time) messages.Part {
	config := s.carrier.config()
	part := messages.Part{MessageID: messageID, Segment: segment, Total: total, Carrier: s.carrier.name, Link: link,
		CarrierID: carrierID, At: at, Confirmed: config.Confirm == ConfirmBySubmit}
	if !config.NoReference {
		part.Reference = reference(messageID, segment)
	}
	if form := s.carrier.form(link); form != nil && form.unsure() {
		if part.Unsure = true; time.Since(s.parked) < messages.InboxReach {
			part.Other = otherKeys(carrierID)
		}
	}
	return part
}

// planLate adds an answer to what was given up as unanswered. One that accepts
// takes the place of what was recorded then, and the message is not sent again
// if it has not been yet. One that refuses says nothing new of a message that
// was sent again, or was failed then; one that was held ends by it, or goes out
// again if it was refused for now only.
func (s *settler) planLate(p *plan, a lateAnswer) {
	switch {
	case a.Outcome == smpp.Accepted:
		part := s.accepted(a.link, a.messageID, a.segment, a.total, a.MessageID, a.at)
		part.Late = true
		p.parts = append(p.parts, part)
		if a.total == 1 {
			p.carried = append(p.carried, a.messageID)
		}
	case s.carrier.config().OnAmbiguous != AmbiguousHold:
	case s.refusedForNow(a):
		p.refused = append(p.refused, messages.Refused{MessageID: a.messageID, Segment: a.segment,
			Delay: s.carrier.config().retryDelay(1, rand.Float64())})
	default:
		p.finals = append(p.finals, messages.Final{MessageID: a.messageID, Status: sms.Failed, At: a.at, Reason: a.Status.String()})
	}
}

// refusedForNow tells whether a late answer says that a message which was held
// is to be sent again.
func (s *settler) refusedForNow(a lateAnswer) bool {
	config := s.carrier.config()
	return a.Outcome == smpp.Rejected && config.OnAmbiguous == AmbiguousHold && config.class(a.Status) != smpp.ClassPermanent
}

// copy is the journey for working out what a lot would make of it.
func (j *journey) copy() *journey {
	return &journey{lane: j.lane, msg: j.msg, total: j.total, open: j.open, accepted: j.accepted, verdict: j.verdict,
		refused: j.refused, again: j.again, delay: j.delay, counts: j.counts, wait: j.wait}
}

// apply notes the fate of one segment.
func (j *journey) apply(r result) {
	l := j.lane
	j.open--
	switch r.Outcome {
	case smpp.Accepted:
		j.accepted++
	case smpp.NotWritten:
		if field, bad := errors.AsType[*smpp.FieldError](r.Err); bad {
			j.refuse(r.at, field.Error())
			return
		}
		j.repeat(0, false)
	case smpp.NoAnswer:
		if errors.Is(r.Err, errEchoed) { // its receipt is in the inbox, and says what became of it
			j.accepted++
			return
		}
		switch l.carrier.config().OnAmbiguous {
		case AmbiguousFail:
			j.refuse(r.at, messages.ReasonNoAnswer)
		case AmbiguousHold:
			j.wait, j.counts = true, true // whoever takes it next asks what is out
		default:
			j.repeat(ambiguousDelay, true)
		}
	case smpp.Rejected:
		if l.carrier.config().class(r.Status) == smpp.ClassPermanent {
			j.refuse(r.at, r.Status.String())
			return
		}
		j.repeat(l.retryAfter(j.msg.Attempt), true)
	}
}

func (j *journey) refuse(at time.Time, reason string) {
	if !j.refused {
		j.refused = true
		j.verdict = messages.Final{MessageID: j.msg.ID, Status: sms.Failed, At: at, Reason: reason, Claimant: j.lane.d.member.id.Load()}
	}
}

func (j *journey) repeat(delay time.Duration, counts bool) {
	j.again = true
	j.delay = max(j.delay, delay)
	j.counts = j.counts || counts
}
