package lookup

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// Span is a company's messages of a time, to be read in parts, the oldest first.
type Span struct {
	Company sms.CompanyID
	From    time.Time // created: inclusive
	To      time.Time // exclusive

	// Ids between which all of them are, both exclusive. Later parts begin after the last id that was read.
	After, Until int64
}

// SpanOf returns a company's messages of a time: those that are recorded by now.
func (s *Store) SpanOf(ctx context.Context, company sms.CompanyID, from, to time.Time) (Span, error) {
	span := Span{Company: company, From: from, To: to}
	after, until, err := messages.Reach(ctx, s.pool, from, to)
	if err != nil {
		return span, err
	}
	span.After, span.Until = max(0, after-1), until
	return span, nil
}

// Sent is a message with the segments that its carriers got.
type Sent struct {
	Record

	At []receipts.SegmentRecord
}

// Read returns up to limit messages of a span with their segments, with two queries. There are no more if it returns
// fewer.
func (s *Store) Read(ctx context.Context, span Span, limit int) ([]Sent, error) {
	if !span.Company.Valid() {
		return nil, nil
	}
	page := `(SELECT m.* FROM messages m WHERE ` + messages.OfCompany +
		` AND m.created_at >= $4 AND m.created_at < $5 ORDER BY m.company_id, m.id LIMIT $6)`
	records, err := postgres.All(ctx, s.pool, "reading a span of messages", scanRecord, recordsOf(page)+` ORDER BY m.id`,
		int64(span.Company), span.Until, span.After+1, span.From, span.To, limit)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	ids := make([]int64, len(records))
	for i := range records {
		ids[i] = records[i].ID
	}
	b := &pgx.Batch{}
	segments := receipts.QueueSegments(b, ids)
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("reading the segments of %d messages: %w", len(ids), err)
	}
	all := make([]Sent, len(records))
	for i, r := range records {
		all[i] = Sent{r, segments[r.ID]}
	}
	return all, nil
}
