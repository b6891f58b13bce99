package submission

import (
	"time"

	"intumwa/sms"
)

// Copy is one recorded copy of a segment: the carrier has it, or may have it. Copies are the only answer to what a
// carrier may have of a message; no flag beside them says so.
type Copy struct {
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

// Mark is a later decision about a copy. It is recorded with the copy, which is never deleted for it.
type Mark uint8

// Marks. The values are those of segments.mark.
const (
	Unmarked  Mark = iota
	Passed         // a second carrier has got the message since: this copy reached nobody and does not count
	Overruled      // an operator has sent the segment again: it counts, but no longer keeps the segment from being sent
)

// MayHave reports whether a carrier has, or may have, something of a message with these copies. receipts.MayHave is the
// same condition in SQL.
func MayHave(copies []Copy) bool {
	for i := range copies {
		if copies[i].Mark != Passed {
			return true
		}
	}
	return false
}

// TotalOf returns into how many segments a message was cut when its carrier got the recorded copies; 0: it has none.
func TotalOf(copies []Copy) int {
	for i := range copies {
		if c := &copies[i]; c.Mark != Passed && !c.Other {
			return c.Total
		}
	}
	return 0
}

// StateOf returns the state of segment n of total from the copies of its message at the beginning of an attempt:
// Accepted, Unanswered or Waiting. What another carrier left unanswered, or got as a message cut differently, counts as
// Waiting.
func StateOf(n, total int, copies []Copy) State {
	state := Waiting
	for i := range copies {
		switch c := &copies[i]; {
		case c.Segment != n || c.Mark == Passed || c.Other && c.Total != total:
		case c.Answered || c.Status == sms.Sent:
			return Accepted
		case !c.Other && c.Mark != Overruled:
			state = Unanswered
		}
	}
	return state
}
