// Package receipts finds the segment of a carrier's delivery receipt.
//
// A carrier answers a submit_sm with an id (submit_sm_resp), and later reports the segment's outcome in a deliver_sm
// with that id. This package stores both in two tables, and a [Matcher] for each carrier joins them:
//
//   - segments: a row for each segment that a carrier accepted, or may have: its id in the form of [Key], its link, and
//     the last eight digits of its handset's number.
//   - receipts: those that settled nothing. Without a message they are the inbox; with one they belong to its history.
//
// [Matcher.Record] does nearly all of it, in the caller's transaction: it records the answers, then the reports. Of a
// segment's final states the first stays (rule choices 5.3). The message's status is not decided here.
//
// # How a receipt finds its segment
//
// The first that matches:
//
//  1. By its id, in the configured format, or with auto in any format.
//  2. By user_message_reference, where the carrier echoes it: this finds segments that were never answered (their key
//     is "?" and the reference) and those accepted without an id ("!" and the reference).
//  3. Later: it waits in the inbox, because its submit_sm_resp may be to come. A new segment searches the inbox in the
//     same way, at most fifteen minutes back.
//
// A carrier's transactions run one after another ([Matcher.Lock]): of a response and its receipt, in any processes, the
// second sees the first.
//
// # Formats of ids
//
// A carrier may write a response's id differently in its receipts: in upper case or with leading zeros, which Key
// ignores, or in decimal instead of hexadecimal and vice versa (rule carriers 1.1). The configuration sets the format,
// or auto: then a receipt that names its handset is searched under its id as written and under its forms in the other
// base, read as decimal and as hexadecimal. The first form that was given for the handset decides.
//
// # When the handset must agree
//
// The handset is the last eight digits, which all forms of an address share. A receipt without one settles the segment
// with its id. One with a handset
//
//   - settles a segment of that handset, whichever link it came over;
//   - with a configured format, also another segment of that link, because some carriers write a number of their own;
//     but not if its id was once given for the handset: then it is a repetition;
//   - settles no other: none with auto, because one message's id in decimal may be another's in hexadecimal; none by a
//     reference, which has only 16 bits.
//
// # Ids that come twice
//
// Two SMSCs of a carrier may use the same ids, and one that restarts its count reuses them. Of the open segments with
// its id a receipt means its handset's, before one of its own link, before the youngest. A receipt settles one segment;
// but where all segments of a message have one id, a receipt before their responses settles all that are recorded
// together. Receipts after the first are duplicates or contradictions and change nothing.
package receipts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// inboxReach is how long before its response a receipt may have come. A longer time would match receipts of old
// messages when a carrier reuses ids.
const inboxReach = 15 * time.Minute

// Matcher matches the receipts of one carrier with its segments. Its only state is the tables.
type Matcher struct {
	carrier string
	format  Format
}

// New returns the matcher of a carrier whose receipts write ids in this format.
func New(carrier string, format Format) *Matcher { return &Matcher{carrier, format} }

// Lock makes the caller's transaction the only one that records segments or receipts of the carrier. A receipt and its
// response may be recorded in two transactions (or processes) at once; without the lock each could miss the other. The
// server ends the transaction of a process that sleeps ([postgres.Open]), so it does not block the carrier for long.
func (m *Matcher) Lock(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, lockCarrier, m.carrier); err != nil {
		return fmt.Errorf("locking carrier %s: %w", m.carrier, err)
	}
	return nil
}

const lockCarrier = `SELECT pg_advisory_xact_lock(hashtextextended('intumwa carrier ' || $1, 0))`

// Recorded is the result of one Record.
type Recorded struct {
	Settled  []SegmentState // all segments that became final
	Early    int            // of these, by a receipt before the response
	Outcomes []Outcome      // of the receipts, in their order
	Whose    []int64        // of each Matched receipt: its message
}

// Record takes the carrier's lock ([Matcher.Lock]) and records segments that the carrier accepted, or may have, then
// receipts in the given order. Of a segment's final states the first wins (rule choices 5.3). Settled includes segments
// that are final at once: confirmed by the acceptance, or by an earlier receipt. Of the receipts without a segment,
// room are stored; the others are Throttled. It costs one round trip, which reads; its writes go out with the next
// statement ([postgres.Pipeline]).
func (m *Matcher) Record(ctx context.Context, tx pgx.Tx, segments []Segment, receipts []Receipt, room int) (
	Recorded, error) {
	w := m.newMatching(segments, receipts, room)
	b := &pgx.Batch{}
	b.Queue(lockCarrier, m.carrier)
	w.load(b)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return Recorded{}, fmt.Errorf("%s: %w", w.doing(), err)
	}
	w.match()
	r := Recorded{Early: w.byEarly, Outcomes: w.outcomes, Whose: make([]int64, len(receipts)),
		Settled: make([]SegmentState, len(w.settled))}
	for i, row := range w.settled {
		r.Settled[i] = row.SegmentState
	}
	for i, outcome := range w.outcomes {
		if outcome == Matched {
			r.Whose[i] = w.named[i].MessageID
		}
	}
	b = &pgx.Batch{}
	w.write(b)
	return r, postgres.Pipeline(ctx, tx, w.doing(), b)
}
