package receipts

import (
	"time"

	"intumwa/sms"
)

// Receipt is a carrier's report on one segment.
type Receipt struct {
	Link      string
	CarrierID string  // as written in the receipt
	Reference *uint16 // user_message_reference, if echoed
	Number    string  // the handset, as the carrier writes it (source address)
	State     string  // DELIVRD, UNDELIV, ...
	Status    sms.Status
	Final     bool // whether State is final; else Status does not count
	Error     string
	At        time.Time
}

// Outcome is the result of matching a receipt, from a closed set: a metric's label.
type Outcome string

// Outcomes.
const (
	Matched       Outcome = "matched"       // it settled its segment
	Unmatched     Outcome = "unmatched"     // no such segment yet: stored in the inbox
	Duplicate     Outcome = "duplicate"     // repeats the recorded state
	Contradiction Outcome = "contradiction" // contradicts the recorded state: stored, not applied
	Intermediate  Outcome = "intermediate"  // not final: stored
	Throttled     Outcome = "throttled"     // no such segment, and no room in the inbox: dropped
)

// reported is a receipt during matching.
type reported struct {
	Receipt
	keys    []string // possible keys of its segment, the likeliest first
	handset *int32   // nil: it names none
	verify  bool     // settle only a segment of this handset; else also one of the same link
}

// read returns the keys of a receipt's id. Without a handset to verify it, the id has one form.
func (f Format) read(r Receipt) reported {
	one := reported{Receipt: r, keys: f.keys(r.CarrierID), handset: handset(r.Number), verify: f == Auto}
	if one.handset == nil {
		one.keys = one.keys[:1]
	}
	return one
}
