// Package receipts finds the segment that a carrier's delivery receipt speaks of.
//
// A carrier answers a submit_sm with an id of its own (submit_sm_resp), and reports
// later, by a deliver_sm with that id, what became of the segment. This package keeps
// both in two tables, and a [Matcher], one a carrier, joins them:
//
//   - segments: a row for each segment that a carrier accepted, or may have: its id as
//     [Key] writes it, its link, and the last eight digits of its handset's number.
//   - receipts: those that settled nothing. Without a message they are the inbox; with
//     one they are kept for whoever asks what the carrier said.
//
// [Matcher.Record] does nearly all of it, in the caller's transaction: it writes what
// was answered, then what was reported. Of a segment's final states the first stays
// (rule choices 5.3). What its message becomes by that is not decided here.
//
// # How a receipt finds its segment
//
// The first of these that fits:
//
//  1. By its id, in the configured format, or with auto in any format.
//  2. By user_message_reference, where the carrier echoes it: so are found segments
//     that were never answered (their key is "?" and the reference) and those that were
//     accepted without an id ("!" and the reference).
//  3. Later: it waits in the inbox, since it may be ahead of its submit_sm_resp. A
//     segment that is recorded looks there, fifteen minutes back at most, in the same way.
//
// A carrier's transactions run one after the other ([Matcher.Lock]): of a response and
// its receipt, in whichever processes they are worked on, the second sees the first.
//
// # Formats of ids
//
// A carrier may write the id of a response otherwise in its receipts: in upper case or
// with leading zeros, which Key passes over, or in decimal instead of hexadecimal and
// the other way round (rule carriers 1.1). The configuration names the format, or says
// auto: then a receipt that names its handset is looked for under its id as it is
// written and under what that is in the other base, read as decimal and read as
// hexadecimal. Of these the first that was given for the handset decides.
//
// # When the handset must agree
//
// The handset is what all forms of an address share, its last eight digits. A receipt
// that names none settles whoever has its id. One that names a handset
//
//   - settles a segment that went there, whichever link it came over;
//   - settles, where the format is configured, also another segment of that link,
//     because some carriers write a number of their own; but not when its id was once
//     given for the very handset that it names: then it tells again what is known;
//   - settles no other. None with auto: the digits of one message's id in decimal are
//     another's in hexadecimal. None by a reference: it has 16 bits.
//
// # Ids that come twice
//
// Two SMSCs of a carrier may give the same ids, and one that counts anew gives its old
// ones again. Of the undecided segments with its id a receipt means that of its handset,
// before one of its own link, before the youngest. A receipt settles one segment; but
// where all segments of a message have one id, a receipt that was ahead of their
// responses settles all that are recorded together. What comes after the first is a
// duplicate or a contradiction and changes nothing.
package receipts

import "time"

// inboxReach is how long before its response a receipt may have come. Longer
// would match receipts of old messages when a carrier counts its ids anew.
const inboxReach = 15 * time.Minute

// Matcher matches the receipts of one carrier with its segments. It has no state but the
// tables.
type Matcher struct {
	carrier string
	format  Format
}

// New returns the matcher of a carrier whose receipts write ids in a format.
func New(carrier string, format Format) *Matcher { return &Matcher{carrier, format} }
