package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
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

// PendingCarriers lists the carriers that anything waits for, its time or its turn. It
// reads all that waits.
func (s *Store) PendingCarriers(ctx context.Context) ([]string, error) {
	return postgres.All(ctx, s.pool, "listing the carriers of what waits", pgx.RowTo[string],
		`SELECT carrier FROM outbox UNION SELECT carrier FROM scheduled ORDER BY carrier`)
}

// TakePending takes up to limit messages of a carrier off the outbox that were due by a
// moment, those that were scheduled for then among them, whoever had claimed them: it is
// for whoever does not know what the carrier was given since the database is of. What is
// held stays. What is taken can be put back
// ([Store.PutBack]). No dispatcher may run.
func (s *Store) TakePending(ctx context.Context, tx pgx.Tx, carrier string, due time.Time, limit int) ([]*Claimed, error) {
	fail := func(err error) ([]*Claimed, error) {
		return nil, fmt.Errorf("taking what waited for %s: %w", carrier, err)
	}
	// What is scheduled has no row in outbox, which has all that is taken from there.
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
		c.Attempt = max(c.Attempt, 2) // it may have segments out
		ids[i] = c.ID
	}
	if err := segmentsOut(ctx, tx, taken); err != nil {
		return fail(err)
	}
	if _, err := tx.Exec(ctx, `WITH gone AS (DELETE FROM outbox o WHERE message_id = ANY($1) RETURNING `+goneColumns+`)`+holdGone, ids); err != nil {
		return fail(err)
	}
	return taken, nil
}
