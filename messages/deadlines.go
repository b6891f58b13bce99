package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// deadlineAgain is after how long an overdue message that still waits is checked again: its expiry is another task's.
const deadlineAgain = time.Minute

// OverdueTimed is [Store.Overdue] for messages with a deadline of their own. It checks up to limit of those whose time
// is over and returns those still pending although a carrier's timeout has passed since, with their carriers. done
// means that no more are due. It checks a message a few times at most.
func (s *Store) OverdueTimed(ctx context.Context, tx pgx.Tx, timeout func(carrier string) time.Duration, limit int) (overdue map[int64]string, done bool, err error) {
	fail := func(err error) (map[int64]string, bool, error) {
		return nil, false, fmt.Errorf("looking for timed messages that are overdue: %w", err)
	}
	var (
		id             int64
		expires, now   time.Time
		pending, waits bool
		carrier        string
		over, again    []int64
		at             []time.Time
	)
	overdue = make(map[int64]string)
	if err := postgres.Each(ctx, tx, "taking those that are due", []any{&id, &expires, &now, &pending, &carrier, &waits}, func() error {
		look := now.Add(deadlineAgain)
		if pending && !waits {
			look = expires.Add(timeout(carrier))
		}
		if pending && look.After(now) {
			again, at = append(again, id), append(at, look)
			return nil
		}
		over = append(over, id)
		if pending {
			overdue[id] = carrier
		}
		return nil
	}, `
		WITH due AS MATERIALIZED (
			SELECT message_id, expires_at FROM deadlines WHERE look_at <= now() ORDER BY look_at LIMIT $1 FOR UPDATE SKIP LOCKED
		)
		SELECT d.message_id, d.expires_at, now(), coalesce(m.status = 0, false), coalesce(m.carrier, ''),
			EXISTS (SELECT FROM outbox o WHERE o.message_id = d.message_id AND (o.claimed_by IS NULL OR o.expires_at > now()))
				OR EXISTS (SELECT FROM scheduled s WHERE s.message_id = d.message_id)
		FROM due d LEFT JOIN messages m ON m.id = d.message_id`, limit); err != nil {
		return fail(err)
	}
	b := &pgx.Batch{}
	if len(over) > 0 {
		b.Queue(`DELETE FROM deadlines WHERE message_id = ANY($1)`, over)
	}
	if len(again) > 0 {
		b.Queue(`UPDATE deadlines d SET look_at = u.at FROM unnest($1::bigint[], $2::timestamptz[]) u(id, at) WHERE d.message_id = u.id`, again, at)
	}
	if b.Len() > 0 {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fail(err)
		}
	}
	return overdue, len(over)+len(again) < limit, nil
}
