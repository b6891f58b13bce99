package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// The most ids that a lost second may have used, and the least to skip: the number of ids between the backup's moment
// and the end is unknown.
const (
	skippedSecond = 5_000
	leastSkipped  = 10_000_000
)

// SkipIDs advances the next message's id in a restored database: customers have received the ids that were drawn after
// the backup's moment (message_id, and the webhook-id made of it), and drop repeated ones. ahead is by how much; 0 is
// 5,000 for each second since the newest message, and at least 10 million. It returns the last drawn id and the next
// one.
func SkipIDs(ctx context.Context, tx pgx.Tx, ahead int64) (last, next int64, err error) {
	var since float64 // seconds
	err = tx.QueryRow(ctx, `SELECT last_value, coalesce((SELECT extract(epoch FROM clock_timestamp() - created_at)::float8 FROM messages ORDER BY id DESC LIMIT 1), 0)
		FROM messages_id_seq`).Scan(&last, &since)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the last message's id: %w", err)
	}
	if ahead == 0 {
		ahead = max(leastSkipped, int64(since)*skippedSecond)
	}
	if err := tx.QueryRow(ctx, `SELECT setval('messages_id_seq', $1)`, last+ahead).Scan(&next); err != nil {
		return 0, 0, fmt.Errorf("moving the next message's id: %w", err)
	}
	return last, next + 1, nil
}

// PendingCarriers lists the carriers of all waiting and scheduled messages. It reads all of them.
func (s *Store) PendingCarriers(ctx context.Context) ([]string, error) {
	return postgres.All(ctx, s.pool, "listing the carriers of waiting messages", pgx.RowTo[string],
		`SELECT carrier FROM outbox UNION SELECT carrier FROM scheduled ORDER BY carrier`)
}

// TakePending takes up to limit messages of a carrier off the outbox and off scheduled that were due by a moment,
// claimed or not, except held ones: after a restore it is unknown what the carrier got. The caller records that as
// unanswered copies. No dispatcher may run.
func (s *Store) TakePending(ctx context.Context, tx pgx.Tx, carrier string, due time.Time, limit int) ([]*Claimed, error) {
	fail := func(err error) ([]*Claimed, error) {
		return nil, fmt.Errorf("taking what waited for %s: %w", carrier, err)
	}
	// A scheduled message has no row in outbox.
	if _, err := tx.Exec(ctx, `
		WITH due AS (
			SELECT message_id FROM scheduled WHERE carrier = $1 AND due_at <= $2 ORDER BY message_id LIMIT $3 FOR UPDATE
		), gone AS (
			DELETE FROM scheduled s USING due WHERE s.message_id = due.message_id
			RETURNING s.message_id, s.company_id, s.carrier, s.lane, s.due_at, s.expires_at
		)
		INSERT INTO outbox (message_id, company_id, carrier, lane, due_at, pushed_at, expires_at, since)
		SELECT message_id, company_id, carrier, lane, due_at, NULL, expires_at, due_at FROM gone ORDER BY message_id`, carrier, due, limit); err != nil {
		return fail(err)
	}
	taken, err := postgres.All(ctx, tx, "locking them", scanClaimed,
		`SELECT `+claimedColumns+` FROM outbox o JOIN messages m ON m.id = o.message_id
		WHERE o.carrier = $1 AND o.due_at <= $2 AND m.status = 0 ORDER BY o.message_id LIMIT $3 FOR UPDATE OF o`, carrier, due, limit)
	if err != nil {
		return fail(err)
	}
	ids := make([]int64, len(taken))
	for i, c := range taken {
		ids[i] = c.ID
	}
	if err := readCopies(ctx, tx, carrier, taken); err != nil {
		return fail(err)
	}
	if _, err := tx.Exec(ctx, `WITH `+keptRefusals+` DELETE FROM outbox WHERE message_id = ANY($1)`, ids); err != nil {
		return fail(err)
	}
	return taken, nil
}
