package statistics

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// InvoiceFilter selects what a carrier's invoice is about.
type InvoiceFilter struct {
	Carrier string
	Company sms.CompanyID // 0: all, and the gateway's own messages
	From    time.Time     // inclusive
	To      time.Time     // exclusive
}

// AcceptedSegment is a segment that a carrier accepted.
type AcceptedSegment struct {
	MessageID   int64
	ULID        ulid.ULID
	Company     sms.CompanyID // 0: the gateway's own
	Link        string
	Key         string // as receipts match it
	CarrierID   string // as the carrier wrote it; "" if it gave none
	SubmittedAt time.Time
}

// Discrepancy is a message of which a carrier accepted another number of segments in a period than its company was
// charged for in that period.
type Discrepancy struct {
	MessageID  int64
	ULID       ulid.ULID
	Company    sms.CompanyID // 0: the gateway's own
	AcceptedAt time.Time     // by us
	Carrier    string        // that has it now
	Status     sms.Status
	Test       bool
	Accepted   int64 // segments, by the carrier in the period
	Charged    int64 // credits: those of a message of the period that the carrier has now. Refunds are not subtracted
}

const (
	invoiceIDs = 20_000 // ids that one statement reads
	// longestWay is how long after its acceptance a message may be submitted: its send_at, and messages.validity at most.
	longestWay = sms.MaxAhead + 31*24*time.Hour
)

// invoiceMessages are the messages of a part of the walk that may belong to a period: those created in it, and older
// ones that were not final a day before it began.
const invoiceMessages = `m.id >= $1 AND m.id < $2 AND m.created_at < $5 AND (m.created_at >= $4
	OR coalesce(m.sent_at, m.failed_at, 'infinity') >= $4::timestamptz - interval '1 day')
	AND ($6 = 0 OR m.company_id = $6)`

var acceptedInPart = receipts.Accepted(
	`s.message_id >= $1 AND s.message_id < $2 AND s.carrier = $3 AND s.submitted_at >= $4 AND s.submitted_at < $5`)

var acceptedStatement = `SELECT m.id, m.ulid, m.company_id, a.link, a.key, a.carrier_id, a.submitted_at
	FROM messages m JOIN ` + acceptedInPart + ` a ON a.message_id = m.id WHERE ` + invoiceMessages + ` ORDER BY m.id`

var discrepancyStatement = `SELECT id, ulid, company_id, created_at, carrier, status, test, accepted, charged FROM (
		SELECT m.id, m.ulid, m.company_id, m.created_at, m.carrier, m.status, m.test, coalesce(a.n, 0) AS accepted,
			CASE WHEN m.carrier = $3 AND m.created_at >= $4 AND NOT m.test AND m.company_id <> 0 THEN m.segments
			ELSE 0 END::bigint AS charged
		FROM messages m LEFT JOIN (SELECT message_id, count(*) AS n FROM ` + acceptedInPart +
	` a GROUP BY 1) a ON a.message_id = m.id WHERE ` + invoiceMessages + `
	) d WHERE accepted <> charged ORDER BY id`

// EachAccepted calls do with the segments that a carrier accepted in a period, in the order of messages. It reads them
// in parts, each within a call of turn, which limits concurrent reads; nil: no limit. Purged messages are missing.
func (s *Store) EachAccepted(ctx context.Context, f InvoiceFilter, turn func(read func() error) error,
	do func(*AcceptedSegment) error) error {
	return eachPart(ctx, s, f, turn, acceptedStatement, func(a *AcceptedSegment) []any {
		return []any{&a.MessageID, (*[16]byte)(&a.ULID), &a.Company, &a.Link, &a.Key, &a.CarrierID, &a.SubmittedAt}
	}, do)
}

// EachDiscrepancy is EachAccepted for the messages behind the difference between what a carrier accepted and what
// companies were charged.
func (s *Store) EachDiscrepancy(ctx context.Context, f InvoiceFilter, turn func(read func() error) error,
	do func(*Discrepancy) error) error {
	return eachPart(ctx, s, f, turn, discrepancyStatement, func(d *Discrepancy) []any {
		return []any{&d.MessageID, (*[16]byte)(&d.ULID), &d.Company, &d.AcceptedAt, &d.Carrier, &d.Status, &d.Test,
			&d.Accepted, &d.Charged}
	}, do)
}

func eachPart[T any](ctx context.Context, s *Store, f InvoiceFilter, turn func(read func() error) error,
	statement string, columns func(*T) []any, do func(*T) error) error {
	if turn == nil {
		turn = func(read func() error) error { return read() }
	}
	var first, beyond int64
	if err := turn(func() (err error) {
		first, beyond, err = messages.Reach(ctx, s.pool, f.From.Add(-longestWay), f.To)
		return err
	}); err != nil {
		return err
	}
	for ; first < beyond; first += invoiceIDs {
		var part []T
		if err := turn(func() error {
			var row T
			return postgres.Each(ctx, s.pool, "reading what a carrier accepted", columns(&row),
				func() error { part = append(part, row); return nil },
				statement, first, min(first+invoiceIDs, beyond), f.Carrier, f.From, f.To, int64(f.Company))
		}); err != nil {
			return err
		}
		for i := range part {
			if err := do(&part[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
