package lookup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
)

// History is a message's recorded progress at the carriers.
type History struct {
	Segments []receipts.SegmentRecord
	Receipts []receipts.ReceiptRecord
	Waiting  *WaitingRecord // nil: nothing of it waits for a carrier
	Second   *SecondRecord  // nil: no second carrier got it
	Refused  *RefusalRecord // nil: no carrier refused it for now
}

// RefusalRecord is the last refusal after which a message waited.
type RefusalRecord struct {
	At     time.Time
	Reason string // the status in plain words
}

// WaitingRecord is a message's row in outbox or scheduled.
type WaitingRecord struct {
	Attempts  int
	DueAt     time.Time
	ExpiresAt time.Time
	Claimed   bool
}

// SecondRecord is the record of a message that a second carrier got.
type SecondRecord struct {
	At       time.Time
	From, To string
	Reason   string // why it would have failed
}

// HistoryOf returns a message's segments, receipts and waiting state.
func (s *Store) HistoryOf(ctx context.Context, id int64) (History, error) {
	histories, err := s.HistoriesOf(ctx, []int64{id})
	return histories[id], err
}

// HistoriesOf returns many messages' histories by id, with five queries in all.
func (s *Store) HistoriesOf(ctx context.Context, ids []int64) (map[int64]History, error) {
	b := &pgx.Batch{}
	segments, recorded := receipts.QueueHistory(b, ids)
	var id int64
	var w WaitingRecord
	waiting := make(map[int64]*WaitingRecord)
	postgres.EachQueued(b.Queue(`SELECT message_id, attempts, due_at, expires_at, claimed_by IS NOT NULL FROM outbox
		WHERE message_id = ANY($1)
		UNION ALL SELECT message_id, 0, due_at, expires_at, false FROM scheduled WHERE message_id = ANY($1)`, ids),
		[]any{&id, &w.Attempts, &w.DueAt, &w.ExpiresAt, &w.Claimed}, func() error {
			one := w
			waiting[id] = &one
			return nil
		})
	var r SecondRecord
	second := make(map[int64]*SecondRecord)
	postgres.EachQueued(b.Queue(`SELECT message_id, at, from_carrier, to_carrier, reason FROM carrier_moves
		WHERE message_id = ANY($1)`, ids),
		[]any{&id, &r.At, &r.From, &r.To, &r.Reason}, func() error {
			one := r
			second[id] = &one
			return nil
		})
	var no RefusalRecord
	refused := make(map[int64]*RefusalRecord)
	postgres.EachQueued(b.Queue(`SELECT id, refused_at, refused FROM messages WHERE id = ANY($1) AND refused IS NOT NULL
		UNION ALL SELECT message_id, refused_at, refused FROM outbox WHERE message_id = ANY($1) AND refused IS NOT NULL
		ORDER BY 2`, ids),
		[]any{&id, &no.At, &no.Reason}, func() error {
			one := no
			refused[id] = &one
			return nil
		})
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("reading the history of %d messages: %w", len(ids), err)
	}
	histories := make(map[int64]History, len(ids))
	for _, id := range ids {
		histories[id] = History{segments[id], recorded[id], waiting[id], second[id], refused[id]}
	}
	return histories, nil
}

// Moment is one entry of a message's timeline. Event is from a closed set: accepted, refused, submitted, unanswered,
// receipt, sent_on, sent, failed.
type Moment struct {
	At     time.Time
	Event  string
	Detail string
}

// Timeline returns a message's life in chronological order.
func Timeline(r Record, h History) []Moment {
	moments := []Moment{{At: r.CreatedAt, Event: "accepted"}}
	if no := h.Refused; no != nil {
		moments = append(moments, Moment{At: no.At, Event: "refused", Detail: no.Reason})
	}
	for _, s := range h.Segments {
		moment := Moment{At: s.SubmittedAt, Event: "submitted", Detail: fmt.Sprintf("segment %d of %d by %s", s.Segment,
			r.Segments, s.Link)}
		if !s.Submitted() {
			moment.Event, moment.Detail = "unanswered", fmt.Sprintf("segment %d of %d: %s may have it", s.Segment, r.Segments,
				s.Carrier)
		}
		moments = append(moments, moment)
		if s.ReceiptAt != nil && s.Receipt != "" {
			moments = append(moments, Moment{At: *s.ReceiptAt, Event: "receipt",
				Detail: fmt.Sprintf("segment %d: %s", s.Segment, s.Receipt)})
		}
	}
	for _, k := range h.Receipts {
		moments = append(moments, Moment{At: k.At, Event: "receipt", Detail: fmt.Sprintf("%s (%s)", k.State, k.Outcome)})
	}
	if on := h.Second; on != nil {
		moments = append(moments, Moment{At: on.At, Event: "sent_on", Detail: fmt.Sprintf("from %s to %s: %s", on.From, on.To,
			on.Reason)})
	}
	if r.SentAt != nil {
		moments = append(moments, Moment{At: *r.SentAt, Event: "sent"})
	}
	if r.FailedAt != nil {
		moments = append(moments, Moment{At: *r.FailedAt, Event: "failed", Detail: r.FailureReason})
	}
	const end = 3 // whatever the carriers' clocks say
	rank := map[string]int{"accepted": 0, "submitted": 1, "unanswered": 1, "refused": 1, "receipt": 2, "sent_on": 2,
		"sent": end, "failed": end}
	slices.SortStableFunc(moments, func(a, b Moment) int {
		if c := a.At.Compare(b.At); c != 0 && rank[a.Event] != end && rank[b.Event] != end {
			return c
		}
		return rank[a.Event] - rank[b.Event]
	})
	return moments
}
