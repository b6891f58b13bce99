package receipts

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// SegmentRecord is one segment that a carrier accepted, or may have.
type SegmentRecord struct {
	Segment     int
	Carrier     string
	Link        string
	CarrierID   string
	SubmittedAt time.Time
	Receipt     string // the state that the receipt reported; "" without one
	Error       string
	ReceiptAt   *time.Time
}

// Submitted reports whether the segment's submission by Link at SubmittedAt is recorded. Otherwise its dispatcher died,
// or the database was restored, before that: the carrier may have it, and SubmittedAt is when that was found.
func (s *SegmentRecord) Submitted() bool { return s.Link != "" }

// ID returns the carrier's id; empty when the submit_sm was never answered, or the answer had none.
func (s *SegmentRecord) ID() string {
	if strings.HasPrefix(s.CarrierID, "?") || strings.HasPrefix(s.CarrierID, "!") { // a key without an id
		return ""
	}
	return s.CarrierID
}

// Unanswered reports whether the submit_sm has had no answer.
func (s *SegmentRecord) Unanswered() bool { return strings.HasPrefix(s.CarrierID, "?") }

// ReceiptRecord is a recorded receipt that settled nothing.
type ReceiptRecord struct {
	At        time.Time
	Carrier   string
	Link      string
	CarrierID string
	State     string
	Error     string
	Outcome   Outcome
}

// QueueHistory adds the reading of messages' segments and receipts to a pipeline. It calls segment for each segment, in
// the order of submission, and receipt for each recorded receipt, in the order of arrival.
func QueueHistory(b *pgx.Batch, messages []int64, segment func(message int64, s SegmentRecord), receipt func(message int64, r ReceiptRecord)) {
	b.Queue(`SELECT message_id, segment, carrier, link, coalesce(carrier_id, key), submitted_at,
			coalesce(receipt, ''), coalesce(error, ''), receipt_at
		FROM segments WHERE message_id = ANY($1) ORDER BY submitted_at, segment`, messages).Query(func(rows pgx.Rows) error {
		var id int64
		var seg SegmentRecord
		_, err := pgx.ForEachRow(rows, []any{&id, &seg.Segment, &seg.Carrier, &seg.Link, &seg.CarrierID, &seg.SubmittedAt,
			&seg.Receipt, &seg.Error, &seg.ReceiptAt}, func() error {
			segment(id, seg)
			seg.ReceiptAt = nil // a new one for the next row
			return nil
		})
		return err
	})
	b.Queue(`SELECT message_id, received_at, carrier, link, carrier_id, state, error, outcome FROM receipts
		WHERE message_id = ANY($1) ORDER BY id`, messages).Query(func(rows pgx.Rows) error {
		var id int64
		var rec ReceiptRecord
		_, err := pgx.ForEachRow(rows, []any{&id, &rec.At, &rec.Carrier, &rec.Link, &rec.CarrierID, &rec.State, &rec.Error, &rec.Outcome},
			func() error {
				receipt(id, rec)
				return nil
			})
		return err
	})
}

// FirstSince returns the id of the first receipt without a message that arrived, also as a repetition, at since or
// later: [Inbox] has none of these with a smaller id. Without any it is larger than all ids.
func FirstSince(ctx context.Context, pool *pgxpool.Pool, since time.Time) (id int64, err error) {
	if since.IsZero() {
		return 0, nil
	}
	// MATERIALIZED keeps the planner from walking over all ids to the first match.
	if err := pool.QueryRow(ctx, `WITH came AS MATERIALIZED (SELECT id FROM receipts WHERE received_at >= $1 AND message_id IS NULL)
		SELECT coalesce(min(id), $2) FROM came`, since, int64(math.MaxInt64)).Scan(&id); err != nil {
		return 0, fmt.Errorf("looking for the first receipt of no message since: %w", err)
	}
	return id, nil
}

// inboxScanned is how many receipts one page of Inbox reads.
const inboxScanned = 5_000

// InboxReceipt is a receipt without a message.
type InboxReceipt struct {
	ID        int64
	At        time.Time // when it last arrived
	Carrier   string
	Link      string
	CarrierID string // as the receipt writes it
	Number    string // the handset, as the carrier writes it
	State     string
	Error     string
}

// Inbox returns up to limit receipts without a message, of all carriers, the latest first, with ids below before (0:
// from the latest), and the next page's before, 0 for none. Receipts whose message is found later leave the list.
func Inbox(ctx context.Context, pool *pgxpool.Pool, before int64, limit int) (page []InboxReceipt, next int64, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	var last, seen int64
	batch := &pgx.Batch{}
	batch.Queue(`SELECT coalesce(min(id), 0), count(*) FROM (SELECT id FROM receipts WHERE id < $1 ORDER BY id DESC LIMIT $2) r`, before, inboxScanned).
		QueryRow(func(row pgx.Row) error { return row.Scan(&last, &seen) })
	batch.Queue(`SELECT id, received_at, carrier, link, carrier_id, number, state, error FROM
			(SELECT * FROM receipts WHERE id < $1 ORDER BY id DESC LIMIT $2) r
		WHERE message_id IS NULL ORDER BY id DESC LIMIT $3`, before, inboxScanned, limit+1).
		Query(func(rows pgx.Rows) (err error) {
			page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[InboxReceipt])
			return err
		})
	if err := pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, 0, fmt.Errorf("listing receipts of no message: %w", err)
	}
	switch {
	case len(page) > limit:
		page = page[:limit]
		return page, page[limit-1].ID, nil
	case seen == inboxScanned:
		return page, last, nil
	}
	return page, 0, nil
}
