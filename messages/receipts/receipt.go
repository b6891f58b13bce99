package receipts

import (
	"slices"
	"time"

	"intumwa/sms"
)

// Receipt is a carrier's report on one segment.
type Receipt struct {
	Link      string
	CarrierID string   // as written in the receipt
	Also      []string // further ids of the same receipt, to try if that one names no segment
	Reference *uint16  // user_message_reference, if echoed
	Number    string   // the handset, as the carrier writes it (source address)
	State     string   // DELIVRD, UNDELIV, ...
	Status    sms.Status
	Final     bool // whether State is final; else Status does not count
	Error     string
	At        time.Time
	Trust     Trust
}

// Trust is what a receipt may do.
type Trust uint8

// Degrees of trust.
const (
	Marked  Trust = iota // its esm_class or its TLVs say that it is a receipt
	Checked              // only its text says so: it names a segment only with both the id and the handset
	Aside                // only its text says so, and the carrier is not known to send such ones: it settles nothing
)

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

// read returns the keys of a receipt's ids. Without a handset to verify it, an id has one form.
func (f Format) read(r Receipt) reported {
	one := reported{Receipt: r, keys: f.keys(r.CarrierID), handset: handset(r.Number), verify: f == Auto ||
		r.Trust == Checked}
	if one.handset == nil {
		one.keys = one.keys[:1]
	}
	if one.handset == nil && r.Trust == Checked {
		one.Trust = Aside
	}
	if one.Trust == Aside {
		one.keys, one.Final = one.keys[:1], false
		return one
	}
	for _, id := range r.Also {
		one.add(f.keys(id))
	}
	if id := withoutPart(r.CarrierID); id != "" && one.handset != nil {
		one.add(f.keys(id))
	}
	return one
}

// add adds the keys of a further id.
func (r *reported) add(keys []string) {
	if r.handset == nil {
		keys = keys[:1]
	}
	for _, key := range keys {
		if key != "" && !slices.Contains(r.keys, key) {
			r.keys = append(r.keys, key)
		}
	}
}
