package messages

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// SegmentRecord is one segment that a carrier accepted.
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

// History is how far a message has come with the carriers.
type History struct {
	Segments []SegmentRecord
	Receipts []ReceiptRecord
	Waiting  *WaitingRecord // nil: nothing of it waits for a carrier
}

// WaitingRecord is a message's row in the outbox.
type WaitingRecord struct {
	Attempts  int
	DueAt     time.Time
	ExpiresAt time.Time
	Claimed   bool
}

// HistoryOf returns what carriers have and said of a message.
func (s *Store) HistoryOf(ctx context.Context, id int64) (History, error) {
	histories, err := s.HistoriesOf(ctx, []int64{id})
	return histories[id], err
}

// HistoriesOf returns the same of many messages, by their ids, with
// three queries for any number of them.
func (s *Store) HistoriesOf(ctx context.Context, ids []int64) (map[int64]History, error) {
	histories := make(map[int64]History, len(ids))
	batch := &pgx.Batch{}
	var id int64
	var seg SegmentRecord
	batch.Queue(`SELECT message_id, segment, carrier, link, coalesce(carrier_id, key), submitted_at,
			coalesce(receipt, ''), coalesce(error, ''), receipt_at
		FROM segments WHERE message_id = ANY($1) ORDER BY submitted_at, segment`, ids).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&id, &seg.Segment, &seg.Carrier, &seg.Link, &seg.CarrierID, &seg.SubmittedAt,
			&seg.Receipt, &seg.Error, &seg.ReceiptAt}, func() error {
			h := histories[id]
			h.Segments = append(h.Segments, seg)
			histories[id] = h
			seg.ReceiptAt = nil // the next one's own
			return nil
		})
		return err
	})
	var rec ReceiptRecord
	batch.Queue(`SELECT message_id, received_at, carrier, link, carrier_id, state, error, outcome FROM receipts
		WHERE message_id = ANY($1) ORDER BY id`, ids).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&id, &rec.At, &rec.Carrier, &rec.Link, &rec.CarrierID, &rec.State, &rec.Error, &rec.Outcome},
			func() error {
				h := histories[id]
				h.Receipts = append(h.Receipts, rec)
				histories[id] = h
				return nil
			})
		return err
	})
	var w WaitingRecord
	batch.Queue(`SELECT message_id, attempts, due_at, expires_at, claimed_by IS NOT NULL FROM outbox
		WHERE message_id = ANY($1)`, ids).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&id, &w.Attempts, &w.DueAt, &w.ExpiresAt, &w.Claimed}, func() error {
			h, waiting := histories[id], w
			h.Waiting = &waiting
			histories[id] = h
			return nil
		})
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("reading the history of %d messages: %w", len(ids), err)
	}
	return histories, nil
}

// Moment is one entry of a message's timeline. Event is from a closed set:
// accepted, submitted, receipt, sent, failed.
type Moment struct {
	At     time.Time
	Event  string
	Detail string
}

// Timeline tells a message's life in the order in which it happened.
func Timeline(r Record, h History) []Moment {
	moments := []Moment{{At: r.CreatedAt, Event: "accepted"}}
	for _, s := range h.Segments {
		moments = append(moments, Moment{At: s.SubmittedAt, Event: "submitted", Detail: fmt.Sprintf("segment %d of %d by %s", s.Segment, r.Segments, s.Link)})
		if s.ReceiptAt != nil && s.Receipt != "" {
			moments = append(moments, Moment{At: *s.ReceiptAt, Event: "receipt", Detail: fmt.Sprintf("segment %d: %s", s.Segment, s.Receipt)})
		}
	}
	for _, k := range h.Receipts {
		moments = append(moments, Moment{At: k.At, Event: "receipt", Detail: fmt.Sprintf("%s (%s)", k.State, k.Outcome)})
	}
	if r.SentAt != nil {
		moments = append(moments, Moment{At: *r.SentAt, Event: "sent"})
	}
	if r.FailedAt != nil {
		moments = append(moments, Moment{At: *r.FailedAt, Event: "failed", Detail: r.FailureReason})
	}
	rank := map[string]int{"accepted": 0, "submitted": 1, "receipt": 2, "sent": 3, "failed": 3}
	slices.SortStableFunc(moments, func(a, b Moment) int {
		if c := a.At.Compare(b.At); c != 0 && !(rank[a.Event] == 3 || rank[b.Event] == 3) {
			return c
		}
		return rank[a.Event] - rank[b.Event]
	})
	return moments
}
