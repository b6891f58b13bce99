// Package receipts finds the segment that a carrier's delivery receipt speaks of.
//
// A carrier answers a submit_sm with an id of its own (submit_sm_resp), and reports
// later, by a deliver_sm with that id, what became of the segment. This package keeps
// both in two tables, and a [Matcher], one a carrier, joins them:
//
//   - segments: a row for each segment that a carrier accepted, or may have: the id,
//     as [Key] writes it, the link, and the last eight digits of the handset's number.
//   - receipts: those that settled nothing. Without a message they are the inbox; with
//     one they are kept for whoever asks what the carrier said.
//
// [Matcher.Record] does all of it, in the caller's transaction: it writes what was
// answered, then what was reported. Of a segment's final states the first stays (rule
// choices 5.3). What a message becomes by its segments is not decided here.
//
// # How a receipt finds its segment
//
// The first of these that fits:
//
//  1. By its id, in the form that the receipts of its link are known to have.
//  2. By user_message_reference, if the carrier echoes it. So are found segments
//     that were never answered (their key is "?" and the reference) and those that
//     were accepted without an id ("!" and the reference).
//  3. Not yet: it waits in the inbox, because it may be ahead of its submit_sm_resp.
//     A segment that is recorded looks there for a receipt no older than InboxReach:
//     one with its id; while the form of ids is not certain, one with its id in
//     another form; where it has no id, one that echoes its reference.
//  4. From the inbox, in another form: [Matcher.Rematch] takes each final receipt
//     that has waited for two seconds and tries its id in every form, once.
//
// A carrier's transactions run one after the other ([Matcher.Lock]), so that of a
// receipt and its response, wherever they are worked on, the second sees the first.
//
// # The forms of ids, and how they are learnt
//
// A carrier may write the id of a response otherwise in its receipts: in upper case
// or with leading zeros, which Key passes over, or decimal for hexadecimal and the
// other way round (rule carriers 1.1). The configuration names the form (it is fixed
// then), or says auto: each receipt that finds its segment, with the number of its
// handset, is a vote for the form in which it did. Three votes make a form known, for
// that link; a receipt that fits what is known takes back the votes against it. [Matcher.Committed] returns what was learnt; the caller stores the word, and
// gives it back to [Matcher.Hold] after a restart. Ids that are the same in every form
// say nothing.
//
// # When the handset must agree
//
// The handset is the last eight digits of an address: what all its forms share. A
// receipt that names none is anybody's whose id it has. One that names a handset
//
//   - settles a segment that went there, whatever link it came over;
//   - settles, where the form of its link is fixed, also another segment of the same
//     link, because there are carriers that write a number of their own; but not if
//     the id was given for the handset that it names: it says again what is known;
//   - settles no other: not while the form is learnt, since the digits of one
//     message's id in decimal are another's in hexadecimal; not by a reference,
//     which is of 16 bits; not in another form than the one known.
//
// # Ids that come twice
//
// Two SMSCs of a carrier may give the same ids, and one that counts anew gives its
// old ones again. Of the undecided segments with an id a receipt means the one of its
// handset, then one of its own link, then the youngest. A receipt settles one segment;
// only where all segments of a message have one id, a receipt that was ahead of their
// responses settles all that are recorded together. Who has been settled is told of
// duplicates and contradictions, which change nothing.
package receipts

import (
	"sync"
	"time"
)

// InboxReach is how long before its response a receipt may have come. Longer
// would match receipts of old messages when a carrier counts its ids anew.
const InboxReach = 15 * time.Minute

// Matcher matches the receipts of one carrier with its segments. Beside the tables it
// has what one process knows of the carrier: the form of each link's ids, and how far
// it has looked through the inbox. Its methods may be called at any time, but Rematch
// by one goroutine alone.
type Matcher struct {
	carrier string
	seen    int64 // the last id of the inbox that Rematch has looked at

	mu     sync.Mutex
	links  map[string]*learner
	parked time.Time // when a receipt last went into the inbox whose link's form was not known
}

// New returns the matcher of a carrier.
func New(carrier string) *Matcher {
	return &Matcher{carrier: carrier, links: make(map[string]*learner)}
}
