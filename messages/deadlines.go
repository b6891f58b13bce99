package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// deadlineAgain is after what time it is looked again at a message that waits although its time is over: whoever expires
// such messages has not come by yet.
const deadlineAgain = time.Minute

// OverdueTimed does as [Store.Overdue] with messages whose time is not that of all others: it looks at up to limit of those
// whose time is over and returns those that are still pending although a carrier has had them until the carrier's timeout
// after it, with their carriers. done says that no more are due. It looks at a message a few times at the most.
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
