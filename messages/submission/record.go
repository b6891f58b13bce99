package submission

import (
	"time"

	"intumwa/sms"
)

// Record is a submit record: one submit_sm of a segment, which the carrier has or may have. Submit records are the only
// answer to what a carrier may have of a message; no flag beside them says so.
type Record struct {
	Segment  int        // from 1
	Total    int        // segments of the message as it was cut then
	Answered bool       // its submit_sm_resp came
	Status   sms.Status // Pending, Sent or Failed
	At       time.Time  // when that was known
	Reason   string     // of Failed

	Mark  Mark
	Other bool // it is at another carrier than the message

	Receipt string        // the state that a receipt reported; "": none
	After   time.Duration // how long after its acceptance
}

// Mark is a later decision about a submit record. It is stored with it, and no submit record is ever deleted for it.
type Mark uint8

// Marks. The values are those of segments.mark.
const (
	Unmarked  Mark = iota
	Passed         // a second carrier has got the message since: this submit record reached nobody and does not count
	Overruled      // an operator has sent the segment again: it counts, but no longer keeps the segment from being sent
)

// MayHave reports whether a carrier has, or may have, something of a message with these submit records.
// receipts.MayHave is the same condition in SQL.
func MayHave(records []Record) bool {
	for i := range records {
		if records[i].Mark != Passed {
			return true
		}
	}
	return false
}

// TotalOf returns into how many segments a message was cut when its carrier got the submit records; 0: it has none.
func TotalOf(records []Record) int {
	for i := range records {
		if c := &records[i]; c.Mark != Passed && !c.Other {
			return c.Total
		}
	}
	return 0
}

// StateOf returns the state of segment n of total from the submit records of its message at the beginning of an
// attempt: Accepted, Unanswered or Waiting. What another carrier left unanswered, or got as a message cut differently,
// counts as Waiting.
func StateOf(n, total int, records []Record) State {
	state := Waiting
	for i := range records {
		switch c := &records[i]; {
		case c.Segment != n || c.Mark == Passed || c.Other && c.Total != total:
		case c.Answered || c.Status == sms.Sent:
			return Accepted
		case !c.Other && c.Mark != Overruled:
			state = Unanswered
		}
	}
	return state
}
