package messages

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
)

// ReasonCancelled is the reason of a message that was cancelled before a carrier had any of it.
const ReasonCancelled = "cancelled"

// Queued selects queued messages: one, a batch's, or, with neither, all of a company's.
type Queued struct {
	Company int64
	Batch   int64
	Message int64
}

// from returns the FROM and WHERE of the selected rows o of a table; $1 is q.of, $2 the company.
func (q Queued) from(table string) string {
	switch {
	case q.Message != 0:
		return table + ` o WHERE o.message_id = $1 AND o.company_id = $2`
	case q.Batch != 0:
		return table + ` o WHERE o.message_id = ANY(ARRAY(SELECT id FROM messages WHERE batch_id = $1)) AND o.company_id = $2`
	}
	return table + ` o WHERE $1::bigint = 0 AND o.company_id = $2`
}

// of returns $1 of from.
func (q Queued) of() int64 {
	if q.Message != 0 {
		return q.Message
	}
	return q.Batch
}

// QueuedOf returns the batch with that ULID, of any company; [ErrNotFound] when there is none.
func QueuedOf(ctx context.Context, db interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}, id ulid.ULID) (q Queued, err error) {
	err = db.QueryRow(ctx, `SELECT company_id, id FROM batches WHERE ulid = $1`, uuid(id)).Scan(&q.Company, &q.Batch)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return q, fmt.Errorf("batch %s: %w", id, ErrNotFound)
	case err != nil:
		return q, fmt.Errorf("looking for a batch: %w", err)
	}
	return q, nil
}

// AwaitNoMore closes the selected batches to further recipients, after transactions that are adding some. It is a
// transaction of its own: it locks no batch while the caller waits for a balance.
func (s *Store) AwaitNoMore(ctx context.Context, q Queued) error {
	if q.Message != 0 {
		return nil
	}
	if _, err := s.pool.Exec(ctx, `UPDATE batches SET awaited = 0 WHERE company_id = $2 AND awaited > 0 AND ($1::bigint = 0 OR id = $1)`, q.Batch, q.Company); err != nil {
		return fmt.Errorf("closing batches: %w", err)
	}
	return nil
}

// Cancelled takes up to limit messages with ids above after off the outbox of which no carrier has or may have
// anything, and returns their verdicts. It skips messages in flight and locked ones. It locks the rows before it reads
// them, so it sees claims that were made and released in between. next is where the next call continues, 0 at the end.
func (s *Store) Cancelled(ctx context.Context, tx pgx.Tx, q Queued, after int64, limit int) (finals []Final, next int64, err error) {
	ids, err := postgres.All(ctx, tx, "locking messages to cancel", pgx.RowTo[int64],
		`SELECT o.message_id FROM `+q.from("outbox")+` AND o.message_id > $3 AND `+freeRow+`
		ORDER BY o.message_id LIMIT $4 FOR UPDATE OF o SKIP LOCKED`, q.of(), q.Company, after, limit)
	if err != nil {
		return nil, 0, err
	}
	if len(ids) == 0 {
		return nil, 0, nil
	}
	finals, err = postgres.All(ctx, tx, "cancelling messages", scanCancelled,
		`DELETE FROM outbox o USING messages m WHERE m.id = ANY($1) AND o.message_id = m.id
			AND NOT `+receipts.MayHave("o.message_id")+`
		RETURNING o.message_id, now()`, ids)
	if err != nil {
		return nil, 0, err
	}
	if len(ids) == limit {
		next = ids[len(ids)-1]
	}
	return finals, next, nil
}

// Left counts the selected messages in outbox and scheduled.
func (s *Store) Left(ctx context.Context, q Queued) (n int64, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM `+q.from("outbox")+`) + (SELECT count(*) FROM `+q.from("scheduled")+`)`,
		q.of(), q.Company).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting the messages left: %w", err)
	}
	return n, nil
}
