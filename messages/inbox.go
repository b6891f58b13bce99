package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// InboxReceipt is a receipt that no segment was found for.
type InboxReceipt struct {
	ID int64
	Receipt
}

// Inbox returns final receipts of one carrier that have waited for their
// segment for at least age, with ids above after, oldest first, at most limit.
// Whoever looks for them under other forms of their id looks at each once.
func (s *Store) Inbox(ctx context.Context, tx pgx.Tx, carrier string, after int64, age time.Duration, limit int) ([]InboxReceipt, error) {
	rows, err := tx.Query(ctx, `
		SELECT id, link, carrier_id, key, number, state, status, error, received_at FROM receipts
		WHERE id > $2 AND carrier = $1 AND message_id IS NULL AND status IS NOT NULL AND received_at <= now() - $3::interval
		ORDER BY id LIMIT $4`, carrier, after, age, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the inbox of %s: %w", carrier, err)
	}
	inbox, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r InboxReceipt, err error) {
		r.Carrier, r.Final, r.Verify = carrier, true, true
		var status int16
		err = row.Scan(&r.ID, &r.Link, &r.CarrierID, &r.Key, &r.Number, &r.State, &status, &r.Error, &r.At)
		r.Status = sms.Status(status)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the inbox of %s: %w", carrier, err)
	}
	return inbox, nil
}

// Unanswered is a segment that a carrier has left unanswered so far.
type Unanswered struct {
	MessageID int64
	Segment   int    // from 1
	Reference uint16 // its user_message_reference
}

// Echoed returns those of segments, all of one carrier, whose final receipt
// waits in the inbox: it echoes their reference and names their handset.
func (s *Store) Echoed(ctx context.Context, carrier string, segments []Unanswered) ([]Unanswered, error) {
	n := len(segments)
	ids, numbers, references := make([]int64, n), make([]int16, n), make([]int32, n)
	for i, seg := range segments {
		ids[i], numbers[i], references[i] = seg.MessageID, int16(seg.Segment), int32(seg.Reference)
	}
	rows, err := s.pool.Query(ctx, `
		SELECT u.message_id, u.segment, u.reference
		FROM unnest($2::bigint[], $3::smallint[], $4::int[]) u(message_id, segment, reference)
		JOIN messages m ON m.id = u.message_id
		WHERE EXISTS (SELECT FROM receipts r WHERE r.reference = u.reference AND r.carrier = $1 AND r.message_id IS NULL
			AND r.status IS NOT NULL AND r.received_at > now() - $5::interval AND right(r.number, 8) = right(m.phone_number, 8))`,
		carrier, ids, numbers, references, InboxReach)
	if err != nil {
		return nil, fmt.Errorf("looking for receipts of %d unanswered segments: %w", n, err)
	}
	echoed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Unanswered])
	if err != nil {
		return nil, fmt.Errorf("looking for receipts of %d unanswered segments: %w", n, err)
	}
	return echoed, nil
}

// InboxEnd returns the id of the youngest receipt older than age, the place
// from which a new process goes on looking.
func (s *Store) InboxEnd(ctx context.Context, age time.Duration) (id int64, err error) {
	err = s.pool.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM receipts WHERE received_at < now() - $1::interval`, age).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("finding the end of the inbox: %w", err)
	}
	return id, nil
}

// Settle applies inbox receipts under another key and takes those that found
// their segment out of the inbox. It returns, as Record does, the segments
// settled, and which receipts settled one. The caller holds LockCarrier.
func (s *Store) Settle(ctx context.Context, tx pgx.Tx, inbox []InboxReceipt) (states []SegmentState, matched []bool, err error) {
	if len(inbox) == 0 {
		return nil, nil, nil
	}
	var found lookups
	outcomes := make([]Outcome, len(inbox))
	for i, r := range inbox {
		found.add(i, r.Key, r.Receipt, true)
	}
	if err := found.settle(ctx, tx, inbox[0].Carrier, outcomes); err != nil {
		return nil, nil, err
	}
	matched = make([]bool, len(inbox))
	var ids []int64
	for i, outcome := range outcomes {
		if outcome == Matched {
			matched[i] = true
			ids = append(ids, inbox[i].ID)
		}
	}
	if len(ids) > 0 {
		if _, err := tx.Exec(ctx, `DELETE FROM receipts WHERE id = ANY($1)`, ids); err != nil {
			return nil, nil, fmt.Errorf("taking %d receipts out of the inbox: %w", len(ids), err)
		}
	}
	return found.states, matched, nil
}
