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

// Segment is one that a carrier accepted (submit_sm_resp with status 0), or may
// have (Unanswered).
type Segment struct {
	MessageID int64
	Segment   int // from 1
	Total     int
	Number    sms.Number // of its message; "" of one that is Late will do
	Link      string
	CarrierID string // message_id of the submit_sm_resp, as it came
	At        time.Time
	Confirmed bool // the acceptance itself confirms: carrier with confirm: submit

	// Unanswered is a segment that was written and never answered: a carrier
	// may have it. It has no id; a receipt that echoes its Reference
	// (user_message_reference) can still settle it, as it can one that was
	// accepted without an id. 0: none was sent.
	Unanswered bool
	Reference  uint16

	// Late says that the answer came after the segment had been recorded as
	// Unanswered: it takes that one's place. Of several copies without an answer
	// it takes one's: of the others the carrier has said nothing yet.
	Late bool
}

// referenceKey is the key of an unanswered segment, namelessKey of one that was
// accepted without an id. Should a carrier's ids look like them, little is lost:
// a match by a reference is made only with the handset's number beside it.
func referenceKey(reference uint16) string { return "?" + strconv.Itoa(int(reference)) }

func namelessKey(reference uint16) string { return "!" + strconv.Itoa(int(reference)) }

// key is the key under which a segment is stored.
func (p *Segment) key() string {
	switch key := Key(p.CarrierID); {
	case p.Unanswered:
		return referenceKey(p.Reference)
	case key == "" && p.Reference != 0:
		return namelessKey(p.Reference)
	default:
		return key
	}
}

// SegmentState is a segment that reached a final state just now.
type SegmentState struct {
	MessageID int64
	Segment   int
	Total     int
	Status    sms.Status
	Receipt   string // the carrier's word, "" when its acceptance was enough
	Error     string
	At        time.Time

	// Unanswered: the receipt settled a segment whose answer never came. The
	// message may still stand in the outbox, to be sent again.
	Unanswered bool
}

// Copy is the segment as its message's verdict sees it.
func (s *SegmentState) Copy() submission.Copy {
	return submission.Copy{Segment: s.Segment, Answered: !s.Unanswered, Status: s.Status, At: s.At, Reason: reasonOf(s.Receipt, s.Error)}
}

// reasonOf is why a segment failed, in the carrier's words.
func reasonOf(receipt, code string) string {
	if code == "" {
		return receipt
	}
	return receipt + " " + code
}

// Conditions on a row s of segments.
const (
	unansweredKey = `s.key LIKE '?%'`     // its answer never came
	answeredKey   = `s.key NOT LIKE '?%'` // it came
)

// Written reports whether one of segments is recorded exactly so: then the transaction that
// recorded it was committed, and everything else that it wrote. It is for the repetition of a
// transaction whose COMMIT was not answered; the caller holds the lock ([Matcher.Lock]).
func (m *Matcher) Written(ctx context.Context, tx pgx.Tx, segments []Segment) (written bool, err error) {
	n := len(segments)
	ids, numbers, links, keys, at := make([]int64, n), make([]int16, n), make([]string, n), make([]string, n), make([]time.Time, n)
	for i := range segments {
		p := &segments[i]
		ids[i], numbers[i], links[i], keys[i], at[i] = p.MessageID, int16(p.Segment), p.Link, p.key(), p.At
	}
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM unnest($2::bigint[], $3::smallint[], $4::text[], $5::text[], $6::timestamptz[]) u(message_id, segment, link, key, at)
			JOIN segments s USING (message_id, segment, link, key) WHERE s.carrier = $1 AND s.submitted_at = u.at)`,
		m.carrier, ids, numbers, links, keys, at).Scan(&written); err != nil {
		return false, fmt.Errorf("looking whether %d segments are recorded: %w", n, err)
	}
	return written, nil
}
