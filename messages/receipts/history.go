package receipts

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
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

// QueueSegments adds the reading of messages' segments, in the order of submission, to a pipeline; it fills the map
// when the results are read.
func QueueSegments(b *pgx.Batch, messages []int64) (segments map[int64][]SegmentRecord) {
	segments = make(map[int64][]SegmentRecord)
	var id int64
	var s SegmentRecord
	postgres.EachQueued(b.Queue(`SELECT message_id, segment, carrier, link, coalesce(carrier_id, key), submitted_at,
			coalesce(receipt, ''), coalesce(error, ''), receipt_at
		FROM segments WHERE message_id = ANY($1) ORDER BY submitted_at, segment`, messages),
		[]any{&id, &s.Segment, &s.Carrier, &s.Link, &s.CarrierID, &s.SubmittedAt, &s.Receipt, &s.Error, &s.ReceiptAt},
		func() error {
			segments[id] = append(segments[id], s)
			s.ReceiptAt = nil // a new one for the next row
			return nil
		})
	return segments
}

// QueueHistory is [QueueSegments] with the recorded receipts, in the order of arrival.
func QueueHistory(b *pgx.Batch, messages []int64) (segments map[int64][]SegmentRecord,
	receipts map[int64][]ReceiptRecord) {
	segments, receipts = QueueSegments(b, messages), make(map[int64][]ReceiptRecord)
	var id int64
	var r ReceiptRecord
	postgres.EachQueued(b.Queue(`SELECT message_id, received_at, carrier, link, carrier_id, state, error, outcome
		FROM receipts
		WHERE message_id = ANY($1) ORDER BY id`, messages),
		[]any{&id, &r.At, &r.Carrier, &r.Link, &r.CarrierID, &r.State, &r.Error, &r.Outcome}, func() error {
			receipts[id] = append(receipts[id], r)
			return nil
		})
	return segments, receipts
}
