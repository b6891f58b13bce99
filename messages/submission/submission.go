// Package submission is the life of a segment on its way to a carrier, as a
// pure function: from what is known of it and what was heard, what is known now
// and what has to be done (Next). It does no I/O, has no clock and draws no
// random numbers: times and delays come in as values. Who gathers the events
// (the dispatcher) asks it once for each, writes what it says in one
// transaction, and carries out the rest when that is committed.
//
// SMPP 3.4 has no way to ask a carrier whether it has what was written to it and
// never answered. That a carrier may have a segment is told by two states and
// nothing else: InFlight and Unanswered.
//
// Three more values and functions of the same kind are built on it: Attempt sums
// up the results of the segments in one attempt at a message, End says how the
// attempt ends, and Verdict gives the status of a message by the states of its
// segments.
package submission

import (
	"time"

	"intumwa/sms"
)

// State is what is known of one copy of a segment. A segment that is sent again
// without an answer to the first copy has two.
type State uint8

// States. The last three are final.
const (
	Waiting     State = iota // not written: the carrier cannot have it
	InFlight                 // being written, or written and not answered yet: the carrier may have it
	Unanswered               // given up waiting for its submit_sm_resp: the carrier may have it
	Accepted                 // submit_sm_resp said ESME_ROK: the carrier has it, and a receipt is to come
	Delivered                // a receipt says so, or the acceptance of a carrier that gives none
	Undelivered              // a receipt says that it will not be
	Refused                  // it will never be accepted
)

var states = [...]string{"waiting", "in flight", "unanswered", "accepted", "delivered", "undelivered", "refused"}

func (s State) String() string { return states[s] }

// Final reports whether nothing changes the state any more.
func (s State) Final() bool { return s >= Delivered }

// Policy says what becomes of a segment that the carrier may have and did not
// answer (on_ambiguous).
type Policy uint8

// Policies.
const (
	Resend Policy = iota // send it again: it may arrive twice
	Hold                 // wait for a receipt, or for the answer, until the message's time is up
	Fail                 // give the message up
)

// Event is what was heard of a segment, or decided.
type Event interface{ event() }

// Events.
type (
	// Writing says that it is about to be handed to the link. Where the policy is not
	// Resend, or another carrier may be asked for it later (Second), that has to be
	// recorded before the first octet goes out.
	Writing struct{ Second bool }
	// NotWritten says that the link went down, or had no room, before the write.
	NotWritten struct{}
	// Unsendable says that SMPP cannot carry it.
	Unsendable struct{ Reason string }
	// OptedOut says that its handset wants no more of its sender, as was seen
	// before the first octet of its message went out.
	OptedOut struct{}
	// Answered is a submit_sm_resp with ESME_ROK. Confirms: this carrier gives no
	// receipts, its acceptance is all that will be said.
	Answered struct{ Confirms bool }
	// Rejected is a submit_sm_resp with another status, or a generic_nack.
	// Permanent: it would be the same again. Else it is due again after Delay.
	// Unroutable: it is permanent, because this carrier has no way to the number,
	// and another one may be asked.
	Rejected struct {
		Permanent  bool
		Unroutable bool
		Reason     string
		Delay      time.Duration
	}
	// NoAnswer says that the session ended behind the write, or that the answer
	// did not come in the time that it has. Delay is how long a second copy waits.
	NoAnswer struct{ Delay time.Duration }
	// Echoed is no answer, but a receipt that names it waits in the inbox.
	Echoed struct{}
	// Receipt is a final delivery receipt that names it. Soon: it says UNDELIV so
	// soon after the acceptance that another carrier may be asked.
	Receipt struct {
		Status sms.Status // Sent or Failed
		Reason string     // the carrier's words
		Soon   bool
	}
	// OwnerDied says that the process that had it in hand is no more.
	OwnerDied struct{}
	// Expired says that the validity of its message is over.
	Expired struct{}
	// ReceiptOverdue says that the receipt has not come in its time. Status is
	// what the carrier's setting makes of that.
	ReceiptOverdue struct{ Status sms.Status }
)

func (Writing) event()        {}
func (NotWritten) event()     {}
func (Unsendable) event()     {}
func (OptedOut) event()       {}
func (Answered) event()       {}
func (Rejected) event()       {}
func (NoAnswer) event()       {}
func (Echoed) event()         {}
func (Receipt) event()        {}
func (OwnerDied) event()      {}
func (Expired) event()        {}
func (ReceiptOverdue) event() {}

// Reasons of failure that are ours; a carrier's own come as its words.
const (
	ReasonExpired   = "expired"    // validity over before a carrier had it
	ReasonNoReceipt = "no_receipt" // a carrier had it and never said what became of it
	ReasonNoAnswer  = "no_answer"  // a carrier may have it and never answered, and the policy is Fail
	ReasonOptedOut  = "opted_out"  // its handset opted out of its sender before a carrier had it
)

// Record is what is to be written of the segment.
type Record uint8

// Records.
const (
	Nothing           Record = iota
	Mark                     // that it is begun, before the first octet goes out
	AsAccepted               // a row with the carrier's id
	AsUnanswered             // a row without an id: a receipt may echo its reference
	ReplaceUnanswered        // a row with the carrier's id, in place of the unanswered one
	Forget                   // the unanswered row goes: the carrier does not have it
	Outcome                  // its final state
)

// Effect is what has to be done.
type Effect struct {
	Record Record
	Stop   bool          // no further segment of the message goes out in this attempt
	Again  bool          // it is to be sent, or sent again
	Delay  time.Duration // after so long
	Counts bool          // and the attempt counts
	Hold   bool          // it is not to be sent again, nor is it done
	Done   bool          // whatever waits to be sent again of it need not be; what is in hand ends by itself
	Park   bool          // the receipt waits in the inbox for whom it names
	Fail   string        // the message fails, for this reason
	// Elsewhere: before the message fails, another carrier may be asked, once, if
	// this one neither has nor may have anything of it: by what is recorded
	// (MayGoElsewhere), and because no attempt is under way, anywhere.
	Elsewhere bool
}

// Next returns what is known of a segment after an event, and what has to be
// done. possible is false for what cannot happen; nothing changes then.
func Next(s State, e Event, p Policy) (next State, f Effect, possible bool) {
	if s.Final() { // the first final state stands (rule choices 5.3)
		_, again := e.(Writing)
		return s, Effect{}, !again
	}
	switch e := e.(type) {
	case Writing:
		return writing(s, e, p)
	case NotWritten:
		if s == Waiting || s == InFlight {
			return Waiting, Effect{Again: true, Stop: true}, true
		}
	case Unsendable:
		if s == Waiting || s == InFlight {
			return Refused, Effect{Fail: e.Reason, Stop: true}, true
		}
	case OptedOut:
		if s == Waiting || s == InFlight {
			return Refused, Effect{Fail: ReasonOptedOut, Stop: true}, true
		}
	case Answered:
		return answered(s, e)
	case Rejected:
		return rejected(s, e, p)
	case NoAnswer:
		if s == InFlight {
			return unanswered(p, e.Delay)
		}
	case Echoed:
		if s == InFlight {
			return Unanswered, Effect{Record: AsUnanswered}, true
		}
	case Receipt:
		return receipt(s, e)
	case OwnerDied:
		return ownerDied(s, p)
	case Expired:
		return expired(s, p)
	case ReceiptOverdue:
		if s == Accepted || s == Unanswered {
			if e.Status == sms.Sent {
				return Delivered, Effect{}, true
			}
			return Undelivered, Effect{Fail: ReasonNoReceipt}, true
		}
	}
	return s, Effect{}, false
}

func writing(s State, e Writing, p Policy) (State, Effect, bool) {
	switch {
	case s != Waiting && (s != Unanswered || p == Hold): // of what is unanswered, another copy
		return s, Effect{}, false
	case p == Resend && !e.Second:
		return InFlight, Effect{}, true
	}
	return InFlight, Effect{Record: Mark}, true
}

func answered(s State, e Answered) (State, Effect, bool) {
	f := Effect{Record: AsAccepted}
	switch s {
	case Unanswered: // late
		f = Effect{Record: ReplaceUnanswered, Done: true}
	case InFlight:
	default:
		return s, Effect{}, false
	}
	if e.Confirms {
		return Delivered, f, true
	}
	return Accepted, f, true
}

func rejected(s State, e Rejected, p Policy) (State, Effect, bool) {
	switch {
	case s == Unanswered && p != Hold:
		return s, Effect{}, true // it was sent again, or failed: this says nothing new
	case s == Unanswered && e.Permanent:
		return Refused, Effect{Fail: e.Reason}, true
	case s == Unanswered:
		return Waiting, Effect{Record: Forget, Again: true, Delay: e.Delay, Counts: true}, true
	case s == InFlight && e.Permanent:
		return Refused, Effect{Fail: e.Reason, Stop: true, Elsewhere: e.Unroutable}, true
	case s == InFlight:
		return Waiting, Effect{Again: true, Delay: e.Delay, Counts: true, Stop: true}, true
	}
	return s, Effect{}, false
}

// unanswered is what becomes of what the carrier may have and did not answer.
func unanswered(p Policy, delay time.Duration) (State, Effect, bool) {
	switch p {
	case Hold:
		return Unanswered, Effect{Record: AsUnanswered, Hold: true, Counts: true}, true
	case Fail:
		return Unanswered, Effect{Record: AsUnanswered, Fail: ReasonNoAnswer}, true
	default:
		return Unanswered, Effect{Record: AsUnanswered, Again: true, Delay: delay, Counts: true}, true
	}
}

func receipt(s State, e Receipt) (State, Effect, bool) {
	switch s {
	case Waiting, InFlight: // of the copy before, or ahead of the answer
		return s, Effect{Park: true}, true
	}
	f := Effect{Record: Outcome, Done: s == Unanswered}
	if e.Status == sms.Sent {
		return Delivered, f, true
	}
	f.Fail, f.Elsewhere = e.Reason, e.Soon && s == Accepted // of what was unanswered, there may be another copy
	return Undelivered, f, true
}

func ownerDied(s State, p Policy) (State, Effect, bool) {
	switch {
	case s == InFlight && p == Resend: // nothing is written of it: it waits as before
		return Waiting, Effect{Again: true}, true
	case s == InFlight:
		return unanswered(p, 0)
	case s == Waiting:
		return s, Effect{Again: true}, true
	}
	return s, Effect{}, true
}

func expired(s State, p Policy) (State, Effect, bool) {
	switch {
	case s == Waiting, s == Unanswered && p == Resend: // the second copy was never written
		return Refused, Effect{Fail: ReasonExpired}, true
	}
	return s, Effect{}, true // the carrier was told when it ends, and decides
}
