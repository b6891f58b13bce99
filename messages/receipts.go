package messages

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Receipt is what a carrier reported of one segment.
type Receipt struct {
	Carrier   string
	Link      string
	CarrierID string  // as the receipt writes it
	Key       string  // Key of the id in the form that the submit_sm_resp had
	Reference *uint16 // user_message_reference, where the carrier echoes it
	Number    string  // the handset, as the carrier writes it (source address)
	Verify    bool    // settle only a segment that went to Number; else also any of the same link
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

// noticesKept is how many receipts that settle nothing are kept of a message,
// for each of its segments. No carrier has more to say.
const noticesKept = 8

// reports are the receipts of one Record, on their way.
type reports struct {
	receipts          []Receipt
	outcomes          []Outcome
	room              int // in the inbox
	byID, byReference lookups
}

func newReports(receipts []Receipt, room int) *reports {
	r := &reports{receipts: receipts, outcomes: make([]Outcome, len(receipts)), room: room}
	for i := range receipts {
		if receipts[i].Final {
			r.byID.add(i, receipts[i].Key, receipts[i], receipts[i].Verify)
		}
	}
	return r
}

// finish goes on where no segment was found by its id: by the reference that a
// receipt echoes, or else into the inbox.
func (r *reports) finish(ctx context.Context, tx pgx.Tx, carrier string) error {
	r.byID.note(r.outcomes)
	if err := r.settleNext(ctx, tx, carrier); err != nil {
		return err
	}
	for i, receipt := range r.receipts {
		if receipt.Final && r.outcomes[i] == "" && receipt.Reference != nil && lastDigits(receipt.Number) != "" && !r.byID.shared(i, receipt.Key, receipt) {
			r.byReference.add(i, referenceKey(*receipt.Reference), receipt, true)
			r.byReference.add(i, namelessKey(*receipt.Reference), receipt, true)
		}
	}
	if err := r.byReference.settle(ctx, tx, carrier, r.outcomes); err != nil {
		return err
	}
	return keepRest(ctx, tx, r.receipts, r.outcomes, r.room)
}

// settleNext looks for the segments of receipts that name their segment as one
// before in the lot does. Mostly they only say the same again; but there are
// carriers that give all segments of a message one id.
func (r *reports) settleNext(ctx context.Context, tx pgx.Tx, carrier string) error {
	for {
		var next lookups
		for i, receipt := range r.receipts {
			if receipt.Final && r.outcomes[i] == "" && r.byID.shared(i, receipt.Key, receipt) {
				next.add(i, receipt.Key, receipt, receipt.Verify)
			}
		}
		if err := next.settle(ctx, tx, carrier, r.outcomes); err != nil {
			return err
		}
		if r.byID.states = append(r.byID.states, next.states...); len(next.states) == 0 {
			return nil
		}
	}
}

func (r *reports) states() []SegmentState { return append(r.byID.states, r.byReference.states...) }

// lookups are final receipts by column, one a key: of several receipts for one
// segment the first counts.
type lookups struct {
	n                                    []int32
	keys, words, errors, handsets, links []string
	verify                               []bool
	status                               []int16
	at                                   []time.Time
	first                                map[string]int
	states                               []SegmentState // of the segments settled
}

func (l *lookups) add(i int, key string, r Receipt, verify bool) {
	if key == "" {
		return
	}
	whose := identity(key, r)
	if _, taken := l.first[whose]; taken {
		return
	}
	if l.first == nil {
		l.first = make(map[string]int)
	}
	l.first[whose] = i
	l.links, l.verify = append(l.links, r.Link), append(l.verify, verify)
	l.n, l.keys, l.words = append(l.n, int32(i)), append(l.keys, key), append(l.words, clean(r.State))
	l.status, l.errors, l.at = append(l.status, int16(r.Status)), append(l.errors, clean(r.Error)), append(l.at, r.At)
	l.handsets = append(l.handsets, lastDigits(r.Number))
}

// identity is what two receipts of one segment share. Two SMSCs of a carrier
// may give the same ids, so the key alone is not enough.
func identity(key string, r Receipt) string { return key + " " + r.Link + " " + lastDigits(r.Number) }

// shared reports whether another receipt before i spoke of the same segment.
func (l *lookups) shared(i int, key string, r Receipt) bool {
	first, ok := l.first[identity(key, r)]
	return ok && first != i
}

// lastDigits is the part of an address that all its forms share: national,
// international, with or without a plus. It is empty for what is no number.
func lastDigits(address string) string {
	digits := strings.TrimLeft(clean(address), "+")
	if len(digits) < 8 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return digits[len(digits)-8:]
}

// queue adds to a pipeline what gives each undecided segment its first final
// receipt.
//
// Two SMSCs of a carrier may give the same ids: a receipt that names a handset
// means a segment that went there; where it need not be so (the configured form
// of ids is trusted: there are carriers that write another number), one of the
// receipt's own link, unless the id was given for that handset once: then it is
// told again of what is decided. A carrier that counts its ids anew has used a key before:
// the youngest undecided segment is meant. The carrier's lock makes the row's address (ctid) safe to name; that two receipts
// name one segment under different identities changes nothing: the first
// decides.
func (l *lookups) queue(b *pgx.Batch, carrier string) {
	if len(l.n) == 0 {
		return
	}
	b.Queue(`
		UPDATE segments s SET state = u.status, receipt = u.word, error = u.error, receipt_at = u.at
		FROM unnest($2::int[], $3::text[], $4::text[], $5::smallint[], $6::text[], $7::timestamptz[], $8::text[], $9::text[], $10::boolean[])
			u(n, key, word, status, error, at, handset, link, verify)
		CROSS JOIN LATERAL (
			SELECT c.ctid AS address FROM segments c JOIN messages m ON m.id = c.message_id
			WHERE c.key = u.key AND c.carrier = $1 AND c.state IS NULL
				AND (u.handset = '' OR right(m.phone_number, 8) = u.handset OR (NOT u.verify AND c.link = u.link AND NOT EXISTS (
					SELECT FROM segments d JOIN messages n ON n.id = d.message_id
					WHERE d.key = u.key AND d.carrier = $1 AND right(n.phone_number, 8) = u.handset)))
			ORDER BY right(m.phone_number, 8) = u.handset DESC, c.link = u.link DESC, c.submitted_at DESC LIMIT 1
		) youngest
		WHERE s.ctid = youngest.address
		RETURNING u.n, s.message_id, s.segment, s.total, s.state, s.receipt, s.error, s.receipt_at, s.key LIKE '?%'`,
		carrier, l.n, l.keys, l.words, l.status, l.errors, l.at, l.handsets, l.links, l.verify).
		Query(func(rows pgx.Rows) (err error) {
			l.states, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (st SegmentState, err error) {
				err = row.Scan(&st.From, &st.MessageID, &st.Segment, &st.Total, &st.Status, &st.Receipt, &st.Error, &st.At, &st.Unanswered)
				return st, err
			})
			if err != nil {
				return fmt.Errorf("settling segments by %d receipts: %w", len(l.n), err)
			}
			return nil
		})
}

// note enters which receipts found their segment.
func (l *lookups) note(outcomes []Outcome) {
	for _, st := range l.states {
		outcomes[st.From] = Matched
	}
}

// settle does what queue does, at once.
func (l *lookups) settle(ctx context.Context, tx pgx.Tx, carrier string, outcomes []Outcome) error {
	b := &pgx.Batch{}
	if l.queue(b, carrier); b.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	l.note(outcomes)
	return nil
}

// keepRest files the receipts that settled nothing: of those that no segment was
// found for so many as there is room for.
func keepRest(ctx context.Context, tx pgx.Tx, receipts []Receipt, outcomes []Outcome, room int) error {
	var n []int32
	var keys, handsets, links []string
	var verify []bool
	for i, r := range receipts {
		if outcomes[i] != "" {
			continue
		}
		n, keys, handsets = append(n, int32(i)), append(keys, r.Key), append(handsets, lastDigits(r.Number))
		links, verify = append(links, r.Link), append(verify, r.Verify)
	}
	if len(n) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
		SELECT u.n, p.message_id, p.state, $7::int * p.total - (SELECT count(*) FROM (
			SELECT FROM receipts k WHERE k.message_id = p.message_id LIMIT $7::int * p.total) kept)
		FROM unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::boolean[]) u(n, key, handset, link, verify)
		CROSS JOIN LATERAL (
			SELECT c.message_id, c.state, c.total FROM segments c JOIN messages m ON m.id = c.message_id
			WHERE c.key = u.key AND u.key <> '' AND c.carrier = $1
				AND (u.handset = '' OR right(m.phone_number, 8) = u.handset OR (NOT u.verify AND c.link = u.link))
			ORDER BY right(m.phone_number, 8) = u.handset DESC, c.link = u.link DESC, c.submitted_at DESC LIMIT 1
		) p`, receipts[0].Carrier, n, keys, handsets, links, verify, noticesKept)
	if err != nil {
		return fmt.Errorf("looking up the segments of receipts: %w", err)
	}
	type known struct {
		message int64
		state   *int16
	}
	segments := make(map[int32]known, len(n))
	notices := make(map[int64]int64) // message -> how many more are kept of it
	var i int32
	var message, more int64
	var state *int16
	if _, err := pgx.ForEachRow(rows, []any{&i, &message, &state, &more}, func() error {
		segments[i] = known{message, state}
		notices[message] = more
		return nil
	}); err != nil {
		return fmt.Errorf("looking up the segments of receipts: %w", err)
	}

	batch := &pgx.Batch{}
	for _, i := range n {
		r := receipts[i]
		seg, found := segments[i]
		var message *int64
		switch {
		case !found && room <= 0:
			outcomes[i] = Throttled
			continue
		case !found:
			outcomes[i] = Unmatched
			room--
		case !r.Final:
			outcomes[i], message = Intermediate, &seg.message
		case seg.state != nil && *seg.state != int16(r.Status):
			outcomes[i], message = Contradiction, &seg.message
		default:
			outcomes[i] = Duplicate // counted, not kept: carriers send them by the dozen
			continue
		}
		if message != nil {
			if notices[*message]--; notices[*message] < 0 {
				continue
			}
		}
		var status *int16
		if r.Final {
			v := int16(r.Status)
			status = &v
		}
		key := r.Key
		var reference *int32
		if r.Reference != nil {
			v := int32(*r.Reference)
			reference = &v
			if key == "" { // all that names it
				key = referenceKey(*r.Reference)
			}
		}
		batch.Queue(`INSERT INTO receipts (carrier, link, key, carrier_id, number, state, status, error, message_id, outcome, reference)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			ON CONFLICT (key, carrier, state, number, carrier_id) WHERE message_id IS NULL
				DO UPDATE SET received_at = now(), link = excluded.link, status = excluded.status, error = excluded.error, reference = excluded.reference`,
			r.Carrier, r.Link, key, clean(r.CarrierID), clean(r.Number), clean(r.State), status, clean(r.Error), message, string(outcomes[i]), reference)
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("keeping %d receipts: %w", batch.Len(), err)
	}
	return nil
}
