package messages

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/receipts"
	"intumwa/sms"
)

// ReasonCancelled is why a message failed that an operator stopped before a carrier had any of it.
const ReasonCancelled = "cancelled"

// Queued says whose messages are meant: a batch's, or, with Batch 0, all that a company has queued.
type Queued struct {
	Company int64
	Batch   int64
}

// QueuedOf is the batch with that ULID, whoever's it is; [ErrNotFound] when there is none.
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

// Cancelled takes up to limit messages off the outbox of which no carrier has or may have anything, with ids above after,
// and returns their verdicts. A message that a dispatcher has in flight at this moment is left alone, and so is one that is
// locked. The rows are locked first and looked at then: what was claimed and given back in between is seen. next is where
// the following call goes on; 0: there are no more.
func (s *Store) Cancelled(ctx context.Context, tx pgx.Tx, q Queued, after int64, limit int) (finals []Final, next int64, err error) {
	query := `SELECT o.message_id FROM messages m JOIN outbox o ON o.message_id = m.id
		WHERE m.batch_id = $1 AND o.company_id = $2 AND o.message_id > $3 AND o.claimed_by IS NULL AND NOT o.begun
		ORDER BY o.message_id LIMIT $4 FOR UPDATE OF o SKIP LOCKED`
	if q.Batch == 0 {
		query = `SELECT o.message_id FROM outbox o
			WHERE $1::bigint = 0 AND o.company_id = $2 AND o.message_id > $3 AND o.claimed_by IS NULL AND NOT o.begun
			ORDER BY o.message_id LIMIT $4 FOR UPDATE SKIP LOCKED`
	}
	rows, err := tx.Query(ctx, query, q.Batch, q.Company, after, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("locking what is to be cancelled: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, 0, fmt.Errorf("locking what is to be cancelled: %w", err)
	}
	if len(ids) == 0 {
		return nil, 0, nil
	}
	rows, err = tx.Query(ctx, `DELETE FROM outbox o USING messages m WHERE m.id = ANY($1) AND o.message_id = m.id
			AND NOT `+receipts.MayHave("o.message_id")+`
		RETURNING o.message_id, now()`, ids)
	if err != nil {
		return nil, 0, fmt.Errorf("cancelling messages: %w", err)
	}
	finals, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Final, error) {
		f := Final{Status: sms.Failed, Reason: ReasonCancelled}
		err := row.Scan(&f.MessageID, &f.At)
		return f, err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("cancelling messages: %w", err)
	}
	if len(ids) == limit {
		next = ids[len(ids)-1]
	}
	return finals, next, nil
}

// Left counts what is still on the outbox.
func (s *Store) Left(ctx context.Context, q Queued) (n int64, err error) {
	query := `SELECT count(*) FROM messages m JOIN outbox o ON o.message_id = m.id WHERE m.batch_id = $1 AND o.company_id = $2`
	if q.Batch == 0 {
		query = `SELECT count(*) FROM outbox WHERE $1::bigint = 0 AND company_id = $2`
	}
	if err := s.pool.QueryRow(ctx, query, q.Batch, q.Company).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting what is left: %w", err)
	}
	return n, nil
}
