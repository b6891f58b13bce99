package webhooks

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Enqueue records events within the transaction that makes their messages
// final, for those companies that have an active endpoint, and returns how many
// it recorded. An event that is already recorded is left alone, so exactly one
// row exists for a message however often it is told. One statement, whatever
// the number of events. Call Kick once tx is committed. rule api 6
func (w *Webhooks) Enqueue(ctx context.Context, tx pgx.Tx, events []Event) (int, error) {
	if len(events) == 0 {
		return 0, nil
	}
	ids := make([]int64, len(events))
	companies := make([]int64, len(events))
	bodies := make([][]byte, len(events))
	room := make([]byte, 0, len(events)*224) // of all bodies; one is under 200 octets
	for i := range events {
		e := &events[i]
		id, err := deliveryID(e.MessageID, e.Name)
		if err != nil {
			return 0, fmt.Errorf("enqueueing webhooks: %w", err)
		}
		from := len(room)
		room = appendBody(room, e)
		ids[i], companies[i], bodies[i] = id, e.CompanyID, room[from:]
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO webhook_deliveries (id, company_id, body)
		SELECT n.id, n.company_id, n.body
		FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS n(id, company_id, body)
		JOIN webhook_endpoints e ON e.company_id = n.company_id AND e.active
		ON CONFLICT (id) DO NOTHING`, ids, companies, bodies)
	if err != nil {
		return 0, fmt.Errorf("enqueueing %d webhooks: %w", len(events), err)
	}
	return int(tag.RowsAffected()), nil
}
