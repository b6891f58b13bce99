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

// reported is a receipt whose id is read in the format that its link is known to have.
type reported struct {
	Receipt
	key     string // of the segment that it names
	handset *int32 // nil: it names none
	verify  bool   // settle only a segment that went to the handset; else also any of the same link
	guess   bool   // the format is not known

	reference *int32   // of one that waits in the inbox: Reference, as it is stored
	keys      []string // of one that waits there: its keys in the formats that are tried now
}

// read reads the id of a receipt.
func (l *learner) read(r Receipt) reported {
	return reported{Receipt: r, key: receiptKey(l.format, r.CarrierID), handset: handset(r.Number), verify: !l.fixed, guess: l.format == Auto}
}
