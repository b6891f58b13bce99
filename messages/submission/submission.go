// Package submission is the life of a message's segments on their way to a carrier, as pure functions: no I/O, clock or
// chance. The dispatcher's settler loads the submit records, calls them, and writes the result in one transaction.
//
//   - [Next] gives a segment's next state after an event, and the effect on its message.
//   - [MayHave] answers from the submit records whether a carrier may have something of a message.
//   - [Decide] gives what becomes of a message's row in the outbox.
//   - [Verdict] gives a message's status from the states of its segments.
//   - [MayGoElsewhere] decides whether a second carrier may be chosen.
//
// SMPP 3.4 cannot query whether a carrier has a segment whose submit_sm was never answered. In two states a carrier may
// have it: InFlight and Unanswered. The second one is stored as a [Record]; the first becomes one when its process
// dies.
package submission

import (
	"time"

	"intumwa/sms"
)

// State is the state of a segment in one attempt at its message.
type State uint8

// States. The last two are final: the first final state stays (rule choices 5.3).
const (
	Waiting    State = iota // not written: the carrier cannot have it
	InFlight                // being written, or written and not answered: the carrier may have it
	Unanswered              // the wait for submit_sm_resp was given up: the carrier may have it
	Accepted                // submit_sm_resp had ESME_ROK: a receipt is to come
	Delivered               // by a receipt, or by the acceptance of a carrier without receipts
	Failed                  // refused by the carrier or by us, or undelivered by a receipt
)

// Policy is the handling of a segment that the carrier may have and did not answer (on_ambiguous).
type Policy uint8

// Policies.
const (
	Resend       Policy = iota // send it again: it may arrive twice
	AwaitReceipt               // wait for a receipt, or the answer, until the deadline
	Fail                       // fail the message
)

// MayWrite reports whether a segment may be submitted, or submitted again.
func (s State) MayWrite(p Policy) bool {
	return s == Waiting || s == Unanswered && p == Resend
}

// Marks reports whether the beginning of an attempt is recorded before its first byte: where a dead process's segments
// are not simply sent again, and where a second carrier may be chosen later.
func (p Policy) Marks(second bool) bool { return p != Resend || second }

// Event is something that happened to a segment.
type Event interface{ event() }

// Events.
type (
	// NotWritten means that the link went down, or had no room, before the write.
	NotWritten struct{}
	// Unsendable means that SMPP cannot carry it, or that its recipient opted out before a carrier had it.
	Unsendable struct{ Reason string }
	// Answered is a submit_sm_resp with ESME_ROK. Confirms: the carrier sends no receipts.
	Answered struct{ Confirms bool }
	// Rejected is a submit_sm_resp with another status, or a generic_nack. Permanent: another try would get the same
	// answer; else the segment is due again after Delay. Unroutable: permanent, because this carrier has no way to the
	// number, and a second carrier is configured.
	Rejected struct {
		Permanent, Unroutable bool
		Reason                string
		Delay                 time.Duration
	}
	// NoAnswer means that the session ended after the write, that the answer did not come in time, or that the process
	// died after it had begun to submit the message. A second submit record waits for Delay.
	NoAnswer struct{ Delay time.Duration }
)

func (NotWritten) event() {}
func (Unsendable) event() {}
func (Answered) event()   {}
func (Rejected) event()   {}
func (NoAnswer) event()   {}

// The gateway's own reasons of failure; a carrier's are its words.
const (
	ReasonExpired   = "expired"        // the validity ended before a carrier had it
	ReasonNoReceipt = "no_receipt"     // a carrier had it and never reported the outcome
	ReasonNoAnswer  = "no_answer"      // a carrier may have it and never answered, with the policy Fail
	ReasonOptedOut  = "opted_out"      // its recipient opted out of its sender before a carrier had it
	ReasonClosed    = "carrier_closed" // its carrier was retired before a carrier had it, and no other takes it
)

// Effect is an event's consequence for the message.
type Effect struct {
	Delay     time.Duration // before the segment is sent again, if it is
	Counts    bool          // the attempt counts: the delays after temporary refusals grow with the attempts
	Refused   string        // the carrier refused the segment for now, for this reason
	Fail      string        // the message fails, for this reason
	Elsewhere bool          // a second carrier may be chosen first, unless MayGoElsewhere forbids it
}

// Next returns the state of a segment after an event, and the effect. Events come to a segment in flight; an answer may
// also come late, to an unanswered one. Other events change nothing.
func Next(s State, e Event, p Policy) (State, Effect) {
	switch s {
	case InFlight:
		return inFlight(e, p)
	case Unanswered:
		return late(e, p)
	}
	return s, Effect{}
}

func inFlight(e Event, p Policy) (State, Effect) {
	switch e := e.(type) {
	case NotWritten:
		return Waiting, Effect{}
	case Unsendable:
		return Failed, Effect{Fail: e.Reason}
	case Answered:
		return accepted(e)
	case Rejected:
		if e.Permanent {
			return Failed, Effect{Fail: e.Reason, Elsewhere: e.Unroutable}
		}
		return Waiting, Effect{Delay: e.Delay, Counts: true, Refused: e.Reason}
	case NoAnswer:
		if p == Fail {
			return Unanswered, Effect{Fail: ReasonNoAnswer}
		}
		return Unanswered, Effect{Delay: e.Delay, Counts: true}
	}
	return InFlight, Effect{}
}

// late handles an answer to an unanswered segment. After Resend and Fail a refusal changes nothing: the segment was
// sent again, or its message has failed.
func late(e Event, p Policy) (State, Effect) {
	switch e := e.(type) {
	case Answered:
		return accepted(e)
	case Rejected:
		if p == AwaitReceipt {
			next, f := inFlight(e, p)
			f.Elsewhere = false
			return next, f
		}
	}
	return Unanswered, Effect{}
}

func accepted(e Answered) (State, Effect) {
	if e.Confirms {
		return Delivered, Effect{}
	}
	return Accepted, Effect{}
}

// Overdue returns the reason of a message whose receipt is overdue, given the status of its carrier's
// on_receipt_timeout.
func Overdue(status sms.Status) (reason string) {
	if status == sms.Failed {
		return ReasonNoReceipt
	}
	return ""
}
