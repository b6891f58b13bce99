package submission

import "time"

// Known is what is known of a message when results, late answers or receipts of its segments are settled.
type Known struct {
	Policy   Policy
	Segments int      // on the wire
	Records  []Record // all of them, this settlement's included

	// Results are those of the attempt under way or at its end, in the order of their arrival, and late refusals. Open
	// is how many segments of the attempt have no result yet. Ended means that this settlement has its last result.
	Results []Result
	Open    int
	Ended   bool
}

// Result is the result of one segment.
type Result struct {
	Segment int // 0: of the whole message
	State   State
	Effect
	At time.Time
}

// Row is what becomes of a message's row in the outbox.
type Row uint8

// Rows.
const (
	Stays  Row = iota // as it is: in the outbox or not
	Leaves            // no carrier is to get more of the message; receipts, late answers or its deadline decide
	Again             // it is due, or due again, after Delay; a message that had left the outbox returns
	Fails             // the message fails, unless a second carrier takes it; the verdict deletes the row
)

// Step is what a settlement means for a message's row.
type Step struct {
	Row       Row
	Delay     time.Duration // of Again; 0: it stays due as before
	Counts    bool          // of Again: the attempt counts
	Refused   string        // of Again: why the carrier refused the message; "": it did not
	Reason    string        // of Fails
	At        time.Time     // of Fails: when that was known
	Elsewhere bool          // of Fails: a second carrier may be chosen first (MayGoElsewhere)
}

// Decide returns the first that applies:
//
//	what is known                                                          | the row
//	-----------------------------------------------------------------------+--------
//	a result fails the message, every failure allows a second carrier, and |
//	  a segment of the attempt is open                                     | stays
//	a result fails the message                                             | fails
//	a segment of the attempt is open                                       | stays
//	a segment has no submit record                                         | again
//	a segment is unanswered, and no attempt ends here                      | stays
//	a segment is unanswered, with resend                                   | again
//	a segment is unanswered, with hold                                     | leaves
//	a segment is unanswered, with fail                                     | fails
//	every segment is accepted                                              | leaves
//
// A segment has no submit record, is unanswered or accepted as StateOf says. That it was not answered fails no message
// once it is accepted: its receipt came before. Where no attempt ends, again means that a late refusal has emptied a
// segment of a message that had left the outbox.
func Decide(k Known) Step {
	fails := Step{Row: Fails, Elsewhere: true}
	again := Step{Row: Again, Counts: len(k.Records) > 0}
	var last time.Time
	for i := range k.Results {
		r := &k.Results[i]
		again.Delay, again.Counts = max(again.Delay, r.Delay), again.Counts || r.Counts
		if r.Refused != "" {
			again.Refused = r.Refused
		}
		if r.At.After(last) {
			last = r.At
		}
		if r.Fail == "" || r.State == Unanswered && StateOf(r.Segment, k.Segments, k.Records) == Accepted {
			continue
		}
		if fails.Elsewhere = fails.Elsewhere && r.Elsewhere; fails.Reason == "" {
			fails.Reason, fails.At = r.Fail, r.At
		}
	}
	least := leastOf(k)
	switch {
	case fails.Reason != "" && fails.Elsewhere && k.Open > 0:
		return Step{}
	case fails.Reason != "":
		return fails
	case k.Open > 0:
		return Step{}
	case least == Waiting:
		return again
	case least == Accepted:
		return Step{Row: Leaves}
	case !k.Ended: // least is Unanswered
		return Step{}
	case k.Policy == Resend:
		return again
	case k.Policy == AwaitReceipt:
		return Step{Row: Leaves}
	}
	return Step{Row: Fails, Reason: ReasonNoAnswer, At: last}
}

// leastOf returns the state of the segment that is furthest from acceptance: Waiting, Unanswered or Accepted.
func leastOf(k Known) State {
	least := Accepted
	for n := 1; n <= k.Segments; n++ {
		least = min(least, StateOf(n, k.Segments, k.Records))
	}
	return least
}
