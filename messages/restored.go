package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// What a lost second may have had at most, and what is skipped in any case: nobody knows how many ids were given out
// between the moment that a backup is of and the end.
const (
	skippedSecond = 5_000
	leastSkipped  = 10_000_000
)

// SkipIDs moves the next message's id ahead, for a database that was restored: ids that were given out after the moment
// that it is of are in customers' hands (message_id, and the webhook-id that is made of it), who drop what they have seen.
// ahead is by how much; 0 is 5,000 for each second since the newest message, and 10 million at least. It returns the last
// id that was given out and the next one. Afterwards as before, ids only grow.
func SkipIDs(ctx context.Context, tx pgx.Tx, ahead int64) (last, next int64, err error) {
	var newest *time.Time
	err = tx.QueryRow(ctx, `SELECT last_value, (SELECT created_at FROM messages ORDER BY id DESC LIMIT 1) FROM messages_id_seq`).Scan(&last, &newest)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the last message's id: %w", err)
	}
	if ahead == 0 {
		ahead = leastSkipped
		if newest != nil {
			ahead = max(ahead, int64(time.Since(*newest).Seconds())*skippedSecond)
		}
	}
	if err := tx.QueryRow(ctx, `SELECT setval('messages_id_seq', $1)`, last+ahead).Scan(&next); err != nil {
		return 0, 0, fmt.Errorf("moving the next message's id: %w", err)
	}
	return last, next + 1, nil
}
