package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
)

// PendingCarriers lists the carriers of all waiting and scheduled messages. It reads all of them.
func (s *Store) PendingCarriers(ctx context.Context) ([]string, error) {
	return postgres.All(ctx, s.pool, "listing the carriers of waiting messages", pgx.RowTo[string],
		`SELECT carrier FROM outbox UNION SELECT carrier FROM scheduled ORDER BY carrier`)
}

// TakePending takes up to limit messages of a carrier off the outbox and off scheduled that were due by a moment,
// claimed or not, except held ones: after a restore it is unknown what the carrier got. The caller records that as
// unanswered submit records. No dispatcher may run.
func (s *Store) TakePending(ctx context.Context, tx pgx.Tx, carrier string, due time.Time, limit int) (
	[]*Claimed, error) {
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
		SELECT message_id, company_id, carrier, lane, due_at, NULL, expires_at, due_at FROM gone ORDER BY message_id`,
		carrier, due, limit); err != nil {
		return fail(err)
	}
	taken, err := readClaimed(ctx, tx, "locking them",
		`SELECT `+claimedColumns+` FROM outbox o JOIN messages m ON m.id = o.message_id
		WHERE o.carrier = $1 AND o.due_at <= $2 AND m.status = 0 ORDER BY o.message_id LIMIT $3 FOR UPDATE OF m, o`, carrier,
		due, limit)
	if err != nil {
		return fail(err)
	}
	ids := make([]int64, len(taken))
	for i, c := range taken {
		ids[i] = c.ID
	}
	if err := readRecords(ctx, tx, carrier, taken); err != nil {
		return fail(err)
	}
	if _, err := tx.Exec(ctx, `WITH `+messages.KeptRefusals+` DELETE FROM outbox WHERE message_id = ANY($1)`,
		ids); err != nil {
		return fail(err)
	}
	return taken, nil
}
