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

// listedMost is how many ids one call of Waiting returns.
const listedMost = 1_000_000

// Waiting returns the ids of the selected messages in outbox and scheduled that are above after, in order. more means
// that there may be others above the last one.
func (s *Store) Waiting(ctx context.Context, q Queued, after int64) (ids []int64, more bool, err error) {
	ids, err = postgres.All(ctx, s.pool, "listing the messages to cancel", pgx.RowTo[int64],
		`SELECT message_id FROM (`+q.from("outbox")+` UNION ALL `+q.from("scheduled")+
			`) w WHERE message_id > $3 ORDER BY message_id LIMIT $4`,
		q.of(), q.Company, after, listedMost)
	return ids, len(ids) == listedMost, err
}

// from selects the message_id of the selected rows of a table; $1 is q.of, $2 the company.
func (q Queued) from(table string) string {
	switch {
	case q.Message != 0:
		return `SELECT o.message_id FROM ` + table + ` o WHERE o.message_id = $1 AND o.company_id = $2`
	case q.Batch != 0:
		return `SELECT o.message_id FROM messages m JOIN ` + table +
			` o ON o.message_id = m.id WHERE m.batch_id = $1 AND o.company_id = $2`
	}
	return `SELECT o.message_id FROM ` + table + ` o WHERE $1::bigint = 0 AND o.company_id = $2`
}

// of returns $1 of from.
func (q Queued) of() int64 {
	if q.Message != 0 {
		return q.Message
	}
	return q.Batch
}

// QueuedOf returns the batch with that ULID, of any company; [ErrNotFound] when there is none.
func QueuedOf(ctx context.Context, db postgres.DB, id ulid.ULID) (q Queued, err error) {
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
// transaction of its own: it locks no batch while the caller waits for a balance. Its commit proves that of an earlier
// call ([postgres.Confirming]).
func (s *Store) AwaitNoMore(ctx context.Context, q Queued) error {
	if q.Message != 0 {
		return nil
	}
	if _, err := s.pool.Exec(ctx, `WITH closed AS (UPDATE batches SET awaited = 0 WHERE company_id = $2 AND awaited > 0
		AND ($1::bigint = 0 OR id = $1))
		SELECT `+postgres.Confirming, q.Batch, q.Company); err != nil {
		return fmt.Errorf("closing batches: %w", err)
	}
	return nil
}

// Cancelled takes those of messages, by id, off the outbox of which no carrier has or may have anything, and returns
// their verdicts. It skips messages in flight and locked ones. It locks the rows before it reads their submit records,
// so it sees claims that were made and released in between.
func (s *Store) Cancelled(ctx context.Context, tx pgx.Tx, ids []int64) ([]Final, error) {
	free, err := postgres.All(ctx, tx, "locking messages to cancel", pgx.RowTo[int64],
		`SELECT o.message_id FROM outbox o JOIN messages m ON m.id = o.message_id WHERE o.message_id = ANY($1)
			AND o.claimed_by IS NULL
		ORDER BY o.message_id FOR UPDATE SKIP LOCKED -- both rows: a verdict takes them the other way round`, ids)
	if err != nil || len(free) == 0 {
		return nil, err
	}
	return postgres.All(ctx, tx, "cancelling messages", FailedFor(ReasonCancelled),
		`WITH `+KeptRefusals+`
		DELETE FROM outbox o USING messages m WHERE m.id = ANY($1) AND o.message_id = m.id
			AND NOT `+receipts.MayHave("o.message_id")+`
		RETURNING o.message_id, now()`, free)
}

// CancelledScheduled is [Store.Cancelled] for scheduled messages. It waits for those that are being released, which are
// in the outbox then: a caller that cancels here first and there afterwards misses none.
func (s *Store) CancelledScheduled(ctx context.Context, tx pgx.Tx, ids []int64) ([]Final, error) {
	return postgres.All(ctx, tx, "cancelling scheduled messages", FailedFor(ReasonCancelled), `
		WITH found AS (SELECT message_id FROM scheduled WHERE message_id = ANY($1) ORDER BY message_id FOR UPDATE)
		DELETE FROM scheduled s USING found WHERE s.message_id = found.message_id RETURNING s.message_id, now()`, ids)
}

// CancelledSandbox cancels a company's message to the sandbox, if its time has not come: from then on it counts as
// being at a carrier.
func (s *Store) CancelledSandbox(ctx context.Context, tx pgx.Tx, q Queued) ([]Final, error) {
	return postgres.All(ctx, tx, "cancelling a message of the sandbox", FailedFor(ReasonCancelled),
		`UPDATE sandbox s SET settled = true FROM messages m
		WHERE s.message_id = $1 AND m.id = s.message_id AND m.company_id = $2 AND m.send_at > now() AND NOT s.settled
		RETURNING s.message_id, now()`, q.Message, q.Company)
}

// Left counts the selected messages in outbox and scheduled.
func (s *Store) Left(ctx context.Context, q Queued) (n int64, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT count(*) FROM (`+q.from("outbox")+` UNION ALL `+q.from("scheduled")+`) w`,
		q.of(), q.Company).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting the messages left: %w", err)
	}
	return n, nil
}
