package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Reroute hands unclaimed messages of one carrier to another and answers how
// many. They are off the belt then; the relay pushes them into the other's
// lanes. A message of which the carrier has accepted a segment stays: the other
// could only send it twice, or cut it otherwise.
func (s *Store) Reroute(ctx context.Context, from, to string, limit int) (int64, error) {
	tag, err := s.pool.Exec(ctx, `
		WITH moved AS (
			SELECT message_id FROM outbox w WHERE carrier = $1 AND claimed_by IS NULL AND due_at <= now() AND expires_at > now()
				AND (attempts = 0 OR NOT EXISTS (SELECT FROM parts p WHERE p.message_id = w.message_id AND p.key NOT LIKE '?%'))
			ORDER BY message_id LIMIT $3 FOR UPDATE SKIP LOCKED
		), o AS (
			UPDATE outbox o SET carrier = $2, pushed_at = NULL FROM moved WHERE o.message_id = moved.message_id
		)
		UPDATE messages m SET carrier = $2 FROM moved WHERE m.id = moved.message_id`, from, to, limit)
	if err != nil {
		return 0, fmt.Errorf("handing messages of %s to %s: %w", from, to, err)
	}
	return tag.RowsAffected(), nil
}

// Stranded is a message that waits for a carrier which nobody serves.
type Stranded struct {
	ID      int64
	Carrier string
	Number  sms.Number
}

// Stranded returns up to limit messages that wait for other carriers than
// those given, none of whose links any process has kept for age. Messages of
// which a carrier has accepted a segment are not among them.
func (s *Store) Stranded(ctx context.Context, carriers []string, age time.Duration, limit int) ([]Stranded, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT w.message_id, w.carrier, m.phone_number FROM outbox w JOIN messages m ON m.id = w.message_id
		WHERE w.carrier <> ALL($1) AND w.claimed_by IS NULL AND w.due_at <= now() AND w.expires_at > now()
			AND NOT EXISTS (SELECT FROM links l WHERE l.carrier = w.carrier AND l.updated_at > now() - $2::interval)
			AND (w.attempts = 0 OR NOT EXISTS (SELECT FROM parts p WHERE p.message_id = w.message_id AND p.key NOT LIKE '?%'))
		ORDER BY w.message_id LIMIT $3`, carriers, age, limit)
	if err != nil {
		return nil, fmt.Errorf("looking for messages of carriers that are no more: %w", err)
	}
	stranded, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Stranded])
	if err != nil {
		return nil, fmt.Errorf("looking for messages of carriers that are no more: %w", err)
	}
	return stranded, nil
}

// Readdress hands unclaimed messages of one carrier, by their ids, to another
// and answers how many. They are off the belt then.
func (s *Store) Readdress(ctx context.Context, ids []int64, from, to string) (int64, error) {
	tag, err := s.pool.Exec(ctx, `
		WITH moved AS (
			UPDATE outbox SET carrier = $3, pushed_at = NULL WHERE message_id = ANY($1) AND carrier = $2 AND claimed_by IS NULL
			RETURNING message_id
		)
		UPDATE messages m SET carrier = $3 FROM moved WHERE m.id = moved.message_id`, ids, from, to)
	if err != nil {
		return 0, fmt.Errorf("handing messages of %s to %s: %w", from, to, err)
	}
	return tag.RowsAffected(), nil
}
