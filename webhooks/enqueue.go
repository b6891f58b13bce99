package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Enqueue records events within the transaction that makes their messages
// final, for those companies that have an active endpoint. An event that is
// already recorded is left alone, so exactly one row exists for a message however
// often it is enqueued. One statement, whatever the number of events, which is run
// with the commit at the latest (postgres.Later). Call Kick once tx is committed.
// rule api 6
func (w *Webhooks) Enqueue(ctx context.Context, tx pgx.Tx, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	ids, companies := make([]int64, len(events)), make([]int64, len(events))
	at, numbers := make([]time.Time, len(events)), make([]string, len(events))
	seen := make(map[int64]bool, len(events))
	n := 0
	for i := range events {
		e := &events[i]
		id, err := deliveryID(e.MessageID, e.Name)
		if err != nil {
			return fmt.Errorf("enqueueing webhooks: %w", err)
		}
		if !seen[id] {
			seen[id] = true
			ids[n], companies[n], at[n], numbers[n] = id, e.CompanyID, e.At, e.PhoneNumber
			n++
		}
	}
	// Not ON CONFLICT DO NOTHING: it writes a second WAL record for every row.
	b := &pgx.Batch{}
	b.Queue(`
		INSERT INTO webhook_deliveries (company_id, id, at, phone_number)
		SELECT n.company_id, n.id, n.at, n.phone_number
		FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::text[]) AS n(company_id, id, at, phone_number)
		JOIN webhook_endpoints e ON e.company_id = n.company_id AND e.active
		WHERE NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.company_id = n.company_id AND d.id = n.id)`,
		companies[:n], ids[:n], at[:n], numbers[:n])
	return postgres.Later(ctx, tx, fmt.Sprintf("enqueueing %d webhooks", n), b)
}
