package receipts

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages/submission"
	"intumwa/sms"
)

// Segment is a segment that a carrier accepted (submit_sm_resp with status 0), or may have (Unanswered).
type Segment struct {
	MessageID int64
	Segment   int // from 1
	Total     int
	Number    sms.Number // of its message; may be "" if Late
	Link      string
	CarrierID string // message_id of the submit_sm_resp, as received
	At        time.Time
	Confirmed bool // the acceptance is final: carrier with confirm: submit

	// Unanswered is a segment that was written and never answered: a carrier may have it. It has no id; a receipt that
	// echoes its Reference (user_message_reference) can settle it, or one that was accepted without an id. 0: none was
	// sent.
	Unanswered bool
	Reference  uint16

	// Late means that the answer came after the segment was recorded as Unanswered, and replaces that row. Of several
	// unanswered submit records it replaces one.
	Late bool
}

// referenceKey is the key of an unanswered segment, namelessKey of one accepted without an id. A carrier's ids may look
// like them without harm: a match by reference also needs the handset's number.
func referenceKey(reference uint16) string { return "?" + strconv.Itoa(int(reference)) }

func namelessKey(reference uint16) string { return "!" + strconv.Itoa(int(reference)) }

// key returns the key under which a segment is stored.
func (p *Segment) key() string {
	switch {
	case p.Unanswered:
		return referenceKey(p.Reference)
	case p.nameless():
		return namelessKey(p.Reference)
	}
	return Key(p.CarrierID)
}

// nameless reports whether only a reference names an accepted segment.
func (p *Segment) nameless() bool { return !p.Unanswered && Key(p.CarrierID) == "" && p.Reference != 0 }

// SegmentState is a segment that has just become final.
type SegmentState struct {
	MessageID int64
	Segment   int
	Total     int
	Status    sms.Status
	Receipt   string // the state that the receipt reported; "" without one
	Error     string
	At        time.Time

	// Unanswered: the receipt settled an unanswered segment. The message may still be in the outbox, to be sent again.
	Unanswered bool
}

// Record returns the segment for its message's verdict.
func (s *SegmentState) Record() submission.Record {
	return submission.Record{Segment: s.Segment, Total: s.Total, Answered: !s.Unanswered, Status: s.Status, At: s.At,
		Reason: reasonOf(s.Receipt, s.Error)}
}

// reasonOf returns why a segment failed, in the carrier's words.
func reasonOf(receipt, code string) string {
	if code == "" {
		return receipt
	}
	return receipt + " " + code
}

// Conditions on a row s of segments.
const (
	unansweredKey = `s.key LIKE '?%'`           // without an answer
	answeredKey   = `s.key NOT LIKE '?%'`       // answered
	counts        = `s.mark IS DISTINCT FROM 1` // not submission.Passed
	// neither answered nor reported, and not sent again
	openRecord = `s.mark IS NULL AND s.state IS NULL AND ` + unansweredKey

	// openSegment: and no other submit record of its segment was answered or reported delivered.
	openSegment = openRecord + ` AND NOT EXISTS (SELECT FROM segments a WHERE a.message_id = s.message_id
		AND a.segment = s.segment
		AND a.mark IS DISTINCT FROM 1 AND (a.key NOT LIKE '?%' OR a.state = 1))`
)

// Written reports whether one of segments is recorded exactly so: then the transaction that recorded it was committed.
// It is for repeating a transaction whose COMMIT was not answered; the caller holds the lock ([Matcher.Lock]).
func (m *Matcher) Written(ctx context.Context, tx pgx.Tx, segments []Segment) (written bool, err error) {
	n := len(segments)
	ids, numbers, links, keys, at := make([]int64, n), make([]int16, n), make([]string, n), make([]string, n),
		make([]time.Time, n)
	for i := range segments {
		p := &segments[i]
		ids[i], numbers[i], links[i], keys[i], at[i] = p.MessageID, int16(p.Segment), p.Link, p.key(), p.At
	}
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM unnest($2::bigint[], $3::smallint[], $4::text[], $5::text[],
		$6::timestamptz[]) u(message_id, segment, link, key, at)
			JOIN segments s USING (message_id, segment, link, key) WHERE s.carrier = $1 AND s.submitted_at = u.at)`,
		m.carrier, ids, numbers, links, keys, at).Scan(&written); err != nil {
		return false, fmt.Errorf("looking whether %d segments are recorded: %w", n, err)
	}
	return written, nil
}
