package receipts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/sms"
)

// QueueObscure adds to a pipeline what makes nobody tell any more from what is recorded
// of messages to which number they went. They must be final: a receipt that comes later
// is not compared with the number.
func QueueObscure(b *pgx.Batch, messages []int64) {
	b.Queue(`UPDATE segments SET handset = NULL WHERE message_id = ANY($1) AND handset IS NOT NULL`, messages)
	b.Queue(`UPDATE receipts SET number = '', handset = NULL WHERE message_id = ANY($1)`, messages)
}

// Naming returns the receipts of the inbox that name a number, of all carriers. It reads
// all that are kept.
func Naming(ctx context.Context, pool *pgxpool.Pool, number sms.Number) ([]InboxReceipt, error) {
	rows, err := pool.Query(ctx, `SELECT id, received_at, carrier, link, carrier_id, number, state, error FROM receipts
		WHERE message_id IS NULL AND handset = $1 ORDER BY id`, handset(string(number)))
	if err != nil {
		return nil, fmt.Errorf("looking for the receipts of a number: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[InboxReceipt])
	if err != nil {
		return nil, fmt.Errorf("looking for the receipts of a number: %w", err)
	}
	return list, nil
}

// Erase deletes them, and returns how many.
func Erase(ctx context.Context, pool *pgxpool.Pool, number sms.Number) (int64, error) {
	tag, err := pool.Exec(ctx, `DELETE FROM receipts WHERE message_id IS NULL AND handset = $1`, handset(string(number)))
	if err != nil {
		return 0, fmt.Errorf("deleting the receipts of a number: %w", err)
	}
	return tag.RowsAffected(), nil
}
