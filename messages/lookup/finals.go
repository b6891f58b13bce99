package lookup

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// Outcome is what became of a message.
type Outcome struct {
	MessageID  int64
	Status     sms.Status // Sent or Failed
	Number     sms.Number
	Reference  string // the customer's own name; "": none
	CostCenter string // the customer's; "": none
	At         time.Time
}

// Outcomes returns a company's messages that became final since a time: those among the first limit messages after an
// id and up to another. last is the last one read, upTo if there are no more. From after 0 it begins with the first
// message that may have been waiting since the time.
func (s *Store) Outcomes(ctx context.Context, company, after, upTo int64, since time.Time, limit int) (
	all []Outcome, last int64, err error) {
	if after == 0 {
		if after, _, err = messages.Reach(ctx, s.pool, since.Add(-sms.MaxAhead), time.Time{}); err != nil {
			return nil, 0, err
		}
		after--
	}
	last = upTo
	rows, err := postgres.All(ctx, s.pool, "reading what became of messages",
		func(row pgx.CollectableRow) (o Outcome, err error) {
			var at *time.Time
			err = row.Scan(&o.MessageID, &o.Status, &o.Number, &o.Reference, &o.CostCenter, &at)
			if at != nil {
				o.At = *at
			}
			return o, err
		}, `SELECT id, status, phone_number, coalesce(client_reference, ''), coalesce(cost_center, ''), coalesce(sent_at,
		failed_at) FROM messages m
		WHERE `+messages.OfCompany+` ORDER BY m.company_id, m.id LIMIT $4`, company, upTo+1, after+1, limit)
	if len(rows) == limit {
		last = rows[limit-1].MessageID
	}
	return slices.DeleteFunc(rows, func(o Outcome) bool { return o.Status == sms.Pending || o.At.Before(since) }), last,
		err
}
