package receipts

import (
	"time"

	"intumwa/sms"
)

// Receipt is what a carrier reported of one segment.
type Receipt struct {
	Link      string
	CarrierID string  // as the receipt writes it
	Reference *uint16 // user_message_reference, where the carrier echoes it
	Number    string  // the handset, as the carrier writes it (source address)
	State     string  // DELIVRD, UNDELIV, ...
	Status    sms.Status
	Final     bool // whether State settles anything; Status counts only then
	Error     string
	At        time.Time
}

// Outcome says what became of a receipt. A closed set: it labels a metric.
type Outcome string

// Outcomes.
const (
	Matched       Outcome = "matched"       // it settled its segment
	Unmatched     Outcome = "unmatched"     // no such segment yet: kept in the inbox
	Duplicate     Outcome = "duplicate"     // says again what is known
	Contradiction Outcome = "contradiction" // says otherwise than the first: kept, not applied
	Intermediate  Outcome = "intermediate"  // settles nothing: kept
	Throttled     Outcome = "throttled"     // no such segment, and no room in the inbox: not kept
)

// reported is a receipt as it is matched.
type reported struct {
	Receipt
	keys    []string // that its segment may have, the likeliest first
	handset *int32   // nil: it names none
	verify  bool     // settle only a segment that went to the handset; else also any of the same link

	reference *int32 // of one that waits in the inbox: Reference, as it is stored
}

// read reads the id of a receipt. Without a handset to prove it, an id is taken as it is
// written.
func (f Format) read(r Receipt) reported {
	one := reported{Receipt: r, keys: f.keys(r.CarrierID), handset: handset(r.Number), verify: f == Auto}
	if one.handset == nil {
		one.keys = one.keys[:1]
	}
	return one
}
