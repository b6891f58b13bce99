package messages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/sms"
)

// Record is a message as it stands.
type Record struct {
	ID            int64 // message_id of the webhooks
	ULID          ulid.ULID
	BatchULID     *ulid.ULID // nil: a single send
	CompanyID     int64
	Number        sms.Number
	Sender        string
	Body          string
	Encoding      sms.Encoding
	Segments      int
	Test          bool
	Carrier       string
	Status        sms.Status
	FailureReason string
	CreatedAt     time.Time
	SentAt        *time.Time
	FailedAt      *time.Time
}

const recordColumns = `m.id, m.ulid, b.ulid, m.company_id, m.phone_number, m.sender, m.body, m.encoding, m.segments, m.test,
	m.carrier, m.status, coalesce(m.failure_reason, ''), m.created_at, m.sent_at, m.failed_at
	FROM messages m LEFT JOIN batches b ON b.id = m.batch_id`

func scanRecord(row pgx.CollectableRow) (r Record, err error) {
	var id, batch pgtype.UUID
	err = row.Scan(&r.ID, &id, &batch, &r.CompanyID, &r.Number, &r.Sender, &r.Body, &r.Encoding, &r.Segments, &r.Test,
		&r.Carrier, &r.Status, &r.FailureReason, &r.CreatedAt, &r.SentAt, &r.FailedAt)
	r.ULID = id.Bytes
	if batch.Valid {
		b := ulid.ULID(batch.Bytes)
		r.BatchULID = &b
	}
	return r, err
}

// ByULID returns a message; company 0 means anybody's (operators), another
// company's message is ErrNotFound.
func (s *Store) ByULID(ctx context.Context, company int64, id ulid.ULID) (Record, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+recordColumns+` WHERE m.ulid = $1 AND ($2 = 0 OR m.company_id = $2)`, uuid(id), company)
	if err != nil {
		return Record{}, fmt.Errorf("looking up message %s: %w", id, err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanRecord)
	if errors.Is(err, pgx.ErrNoRows) {
		return Record{}, ErrNotFound
	}
	if err != nil {
		return Record{}, fmt.Errorf("looking up message %s: %w", id, err)
	}
	return r, nil
}

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
	var j Journey
	rows, err := s.pool.Query(ctx, `SELECT segment, carrier, link, coalesce(carrier_id, key), submitted_at,
			coalesce(receipt, ''), coalesce(error, ''), receipt_at
		FROM parts WHERE message_id = $1 ORDER BY submitted_at, segment`, id)
	if err != nil {
		return j, fmt.Errorf("reading segments: %w", err)
	}
	j.Segments, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r SegmentRecord, err error) {
		err = row.Scan(&r.Segment, &r.Carrier, &r.Link, &r.CarrierID, &r.SubmittedAt, &r.Receipt, &r.Error, &r.ReceiptAt)
		return r, err
	})
	if err != nil {
		return j, fmt.Errorf("reading segments: %w", err)
	}
	rows, err = s.pool.Query(ctx, `SELECT received_at, carrier, link, carrier_id, state, error, outcome FROM receipts
		WHERE message_id = $1 ORDER BY id`, id)
	if err != nil {
		return j, fmt.Errorf("reading receipts: %w", err)
	}
	j.Receipts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r ReceiptRecord, err error) {
		err = row.Scan(&r.At, &r.Carrier, &r.Link, &r.CarrierID, &r.State, &r.Error, &r.Outcome)
		return r, err
	})
	if err != nil {
		return j, fmt.Errorf("reading receipts: %w", err)
	}
	var w WaitingRecord
	err = s.pool.QueryRow(ctx, `SELECT attempts, due_at, expires_at, claimed_by IS NOT NULL FROM outbox WHERE message_id = $1`, id).
		Scan(&w.Attempts, &w.DueAt, &w.ExpiresAt, &w.Claimed)
	switch {
	case err == nil:
		j.Waiting = &w
	case !errors.Is(err, pgx.ErrNoRows):
		return j, fmt.Errorf("reading the outbox: %w", err)
	}
	return j, nil
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
