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

// Journey is how far a message has come with the carriers.
type Journey struct {
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

// JourneyOf returns what is known of a message's way.
func (s *Store) JourneyOf(ctx context.Context, id int64) (Journey, error) {
	journeys, err := s.JourneysOf(ctx, []int64{id})
	return journeys[id], err
}

// JourneysOf returns what is known of the ways of messages, by their ids, with
// three queries for any number of them.
func (s *Store) JourneysOf(ctx context.Context, ids []int64) (map[int64]Journey, error) {
	journeys := make(map[int64]Journey, len(ids))
	batch := &pgx.Batch{}
	var id int64
	var seg SegmentRecord
	batch.Queue(`SELECT message_id, segment, carrier, link, coalesce(carrier_id, key), submitted_at,
			coalesce(receipt, ''), coalesce(error, ''), receipt_at
		FROM parts WHERE message_id = ANY($1) ORDER BY submitted_at, segment`, ids).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&id, &seg.Segment, &seg.Carrier, &seg.Link, &seg.CarrierID, &seg.SubmittedAt,
			&seg.Receipt, &seg.Error, &seg.ReceiptAt}, func() error {
			j := journeys[id]
			j.Segments = append(j.Segments, seg)
			journeys[id] = j
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
				j := journeys[id]
				j.Receipts = append(j.Receipts, rec)
				journeys[id] = j
				return nil
			})
		return err
	})
	var w WaitingRecord
	batch.Queue(`SELECT message_id, attempts, due_at, expires_at, claimed_by IS NOT NULL FROM outbox
		WHERE message_id = ANY($1)`, ids).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&id, &w.Attempts, &w.DueAt, &w.ExpiresAt, &w.Claimed}, func() error {
			j, waiting := journeys[id], w
			j.Waiting = &waiting
			journeys[id] = j
			return nil
		})
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("reading the journeys of %d messages: %w", len(ids), err)
	}
	return journeys, nil
}

// Moment is one entry of a message's timeline. Event is from a closed set:
// accepted, submitted, receipt, sent, failed.
type Moment struct {
	At     time.Time
	Event  string
	Detail string
}

// Timeline tells a message's life in the order in which it happened.
func Timeline(r Record, j Journey) []Moment {
	moments := []Moment{{At: r.CreatedAt, Event: "accepted"}}
	for _, s := range j.Segments {
		moments = append(moments, Moment{At: s.SubmittedAt, Event: "submitted", Detail: fmt.Sprintf("segment %d of %d by %s", s.Segment, r.Segments, s.Link)})
		if s.ReceiptAt != nil && s.Receipt != "" {
			moments = append(moments, Moment{At: *s.ReceiptAt, Event: "receipt", Detail: fmt.Sprintf("segment %d: %s", s.Segment, s.Receipt)})
		}
	}
	for _, k := range j.Receipts {
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
