package submission

import "time"

// Attempt is the known state of one attempt at a message. It is a value: compute the next one before the transaction
// and store it after the commit.
type Attempt struct {
	Open     int  // segments without a result
	MayHave  bool // the carrier has, or may have, something of the message
	accepted bool
	again    bool
	delay    time.Duration
	counts   bool
	hold     bool
	failed   bool
	failure  Failure
}

// Failure is why a message fails, and when that was known.
type Failure struct {
	At     time.Time
	Reason string

	// Elsewhere: after this attempt, a second carrier may be chosen first (Effect.Elsewhere).
	Elsewhere bool
}

// Result returns the attempt after the result of one of its segments.
func (a Attempt) Result(s State, f Effect, at time.Time) Attempt {
	a.Open--
	a.accepted = a.accepted || s == Accepted || s == Delivered
	a.MayHave = a.MayHave || s == Accepted || s == Delivered || s == Unanswered
	a.hold = a.hold || s == Unanswered && !f.Again && f.Fail == ""
	return a.Note(f, at)
}

// Note returns the attempt after an effect without a segment's result: a late refusal, while other segments are open.
func (a Attempt) Note(f Effect, at time.Time) Attempt {
	switch {
	case f.Fail != "" && !a.failed:
		a.failed, a.failure = true, Failure{at, f.Fail, f.Elsewhere}
	case f.Fail != "":
		a.failure.Elsewhere = a.failure.Elsewhere && f.Elsewhere
	}
	if f.Again {
		a.again, a.delay = true, max(a.delay, f.Delay)
	}
	a.counts = a.counts || f.Counts
	return a
}

// End is how an attempt ends.
type End uint8

// Ends.
const (
	Ongoing   End = iota // a segment's result is still to come
	Fails                // the message fails (Failure)
	Retried              // it is tried again (Retry)
	Undecided            // the carrier may have it, and it is not sent again
	Carried              // the carrier has all of it
)

// End returns how the attempt ends, when every segment has its result.
func (a Attempt) End() End {
	switch {
	case a.Open > 0:
		return Ongoing
	case a.failed:
		return Fails
	case a.again:
		return Retried
	case a.hold:
		return Undecided
	}
	return Carried
}

// Failure returns why the message fails; failed is false if it does not, as far as is known. A message fails with its
// first segment, whatever the others do; but whether a second carrier may be chosen first is known when all have their
// results.
func (a Attempt) Failure() (f Failure, failed bool) {
	f = a.failure
	f.Elsewhere = f.Elsewhere && !a.MayHave
	return f, a.failed && !(f.Elsewhere && a.Open > 0)
}

// Retry returns the delay until the next attempt, and whether this one counts: it does if a segment was accepted, so
// that the next claim reads which ones.
func (a Attempt) Retry() (delay time.Duration, counts bool) {
	return a.delay, a.counts || a.accepted
}
