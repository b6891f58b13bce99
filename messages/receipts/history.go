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
	Receipt     string // the carrier's word; "" while none settled it
	Error       string
	ReceiptAt   *time.Time
}

// Submitted reports whether it is recorded that the segment was submitted, by Link at
// SubmittedAt. Else its dispatcher died, or the database was restored, before that was
// recorded: the carrier may have it, and SubmittedAt is when that was found.
func (s *SegmentRecord) Submitted() bool { return s.Link != "" }

// ID returns the carrier's id; empty when there is none, because the submit_sm was never answered or the answer named none.
func (s *SegmentRecord) ID() string {
	if strings.HasPrefix(s.CarrierID, "?") || strings.HasPrefix(s.CarrierID, "!") { // the key that stands in for it
		return ""
	}
	return s.CarrierID
}

// Unanswered reports whether the submit_sm has had no answer.
func (s *SegmentRecord) Unanswered() bool { return strings.HasPrefix(s.CarrierID, "?") }

// ReceiptRecord is a receipt that settled nothing and was kept.
type ReceiptRecord struct {
	At        time.Time
	Carrier   string
	Link      string
	CarrierID string
	State     string
	Error     string
	Outcome   Outcome
}

// QueueHistory adds to a pipeline the reading of what carriers have and said of
// messages: segment is called for each segment, by the time at which it was
// submitted, receipt for each receipt that was kept, in the order in which they came.
func QueueHistory(b *pgx.Batch, messages []int64, segment func(message int64, s SegmentRecord), receipt func(message int64, r ReceiptRecord)) {
	b.Queue(`SELECT message_id, segment, carrier, link, coalesce(carrier_id, key), submitted_at,
			coalesce(receipt, ''), coalesce(error, ''), receipt_at
		FROM segments WHERE message_id = ANY($1) ORDER BY submitted_at, segment`, messages).Query(func(rows pgx.Rows) error {
		var id int64
		var seg SegmentRecord
		_, err := pgx.ForEachRow(rows, []any{&id, &seg.Segment, &seg.Carrier, &seg.Link, &seg.CarrierID, &seg.SubmittedAt,
			&seg.Receipt, &seg.Error, &seg.ReceiptAt}, func() error {
			segment(id, seg)
			seg.ReceiptAt = nil // the next one's own
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

// FirstSince returns the id of the first of the receipts that no message was found for and that
// came, or came again, at a moment or later: [Inbox] has none of these with a smaller id.
// Without any it is larger than all ids.
func FirstSince(ctx context.Context, pool *pgxpool.Pool, since time.Time) (id int64, err error) {
	if since.IsZero() {
		return 0, nil
	}
	// Materialized, or the planner may walk from the first id there is until it meets one.
	if err := pool.QueryRow(ctx, `WITH came AS MATERIALIZED (SELECT id FROM receipts WHERE received_at >= $1 AND message_id IS NULL)
		SELECT coalesce(min(id), $2) FROM came`, since, int64(math.MaxInt64)).Scan(&id); err != nil {
		return 0, fmt.Errorf("looking for the first receipt of no message since: %w", err)
	}
	return id, nil
}

// inboxScanned is how many kept receipts one page of Inbox looks through.
const inboxScanned = 5_000

// InboxReceipt is a receipt that no message was found for.
type InboxReceipt struct {
	ID        int64
	At        time.Time // when it came, or came again
	Carrier   string
	Link      string
	CarrierID string // as the receipt writes it
	Number    string // the handset, as the carrier writes it
	State     string
	Error     string
}

// Inbox returns up to limit receipts that no message was found for, of all
// carriers, the latest first, from the first with an id below before (0: the
// latest there is) on, and where to go on from: 0 when there are no more. What
// is found later leaves the list.
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
