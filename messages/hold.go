package messages

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// heldUntil is when a message is due that its company's lost approval holds: as good as never. It is no infinity, of which
// nobody can say how long it is until then.
const heldUntil = `'9999-12-31T00:00:00Z'::timestamptz`

// holdAtOnce is how many messages one statement holds or releases.
const holdAtOnce = 5_000

// Hold puts off what companies that are approved no more have queued, and has what is held of those that are approved
// again be due. Messages of the test mode need no approval. What a dispatcher has in flight goes on; when it is given back, the
// next call holds it. It returns how many were held and released; without holds it is one look at an empty table.
func (s *Store) Hold(ctx context.Context) (held, released int64, err error) {
	rows, err := s.pool.Query(ctx, `SELECT company_id, released FROM holds ORDER BY company_id`)
	if err != nil {
		return 0, 0, fmt.Errorf("looking for companies that are held: %w", err)
	}
	type hold struct {
		Company  int64
		Released bool
	}
	holds, err := pgx.CollectRows(rows, pgx.RowToStructByPos[hold])
	if err != nil {
		return 0, 0, fmt.Errorf("looking for companies that are held: %w", err)
	}
	for _, h := range holds {
		statement, count := `WITH free AS (
				SELECT o.carrier, o.lane, o.message_id FROM outbox o JOIN messages m ON m.id = o.message_id
				WHERE o.company_id = $1 AND o.due_at < `+heldUntil+` AND o.claimed_by IS NULL AND NOT m.test
				LIMIT $2 FOR UPDATE OF o SKIP LOCKED
			)
			UPDATE outbox o SET due_at = `+heldUntil+` FROM free WHERE (o.carrier, o.lane, o.message_id) = (free.carrier, free.lane, free.message_id)
				AND EXISTS (SELECT FROM holds WHERE company_id = $1 AND NOT released)`, &held
		if h.Released {
			statement, count = `WITH free AS (
				SELECT carrier, lane, message_id FROM outbox WHERE company_id = $1 AND due_at = `+heldUntil+` AND claimed_by IS NULL
				LIMIT $2 FOR UPDATE SKIP LOCKED
			)
			UPDATE outbox o SET due_at = now(), pushed_at = NULL FROM free WHERE (o.carrier, o.lane, o.message_id) = (free.carrier, free.lane, free.message_id)
				AND EXISTS (SELECT FROM holds WHERE company_id = $1 AND released)`, &released
		}
		for n := int64(holdAtOnce); n == holdAtOnce; {
			tag, err := s.pool.Exec(ctx, statement, h.Company, holdAtOnce)
			if err != nil {
				return held, released, fmt.Errorf("holding what company %d has queued: %w", h.Company, err)
			}
			n = tag.RowsAffected()
			*count += n
		}
		if !h.Released {
			continue
		}
		// What somebody had locked is released the next time.
		if _, err := s.pool.Exec(ctx, `DELETE FROM holds WHERE company_id = $1 AND released
			AND NOT EXISTS (SELECT FROM outbox WHERE company_id = $1 AND due_at = `+heldUntil+`)`, h.Company); err != nil {
			return held, released, fmt.Errorf("releasing what company %d has queued: %w", h.Company, err)
		}
	}
	return held, released, nil
}
