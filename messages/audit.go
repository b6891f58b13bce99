package messages

import (
	"context"
	"fmt"
	"time"
)

// Audit is what is not as it should be. All zero is right.
type Audit struct {
	// Unpaid counts live messages without their debit: no ledger row of the
	// request, or one of another amount than the request's segments.
	Unpaid int64
	// Unrecorded counts debits without the messages that they paid for.
	Unrecorded int64
	// StuckPending counts pending messages that nobody will ever decide: not
	// waiting for a carrier, with no segment at one, or past the time by which
	// the sweep, or for the sandbox's its own job, should have decided them.
	StuckPending int64
	// OrphanQueue counts outbox rows without a pending message.
	OrphanQueue int64
}

// Audit proves that every live message was paid and every payment has its
// messages, and that every pending message is on somebody's list. horizon is
// the age past which a message must be final (validity and receipt timeout,
// and some grace). It reads everything in one snapshot and may take minutes
// on a large database.
func (s *Store) Audit(ctx context.Context, horizon time.Duration) (Audit, error) {
	var a Audit
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return a, fmt.Errorf("auditing messages: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing was written
	if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
		return a, fmt.Errorf("auditing messages: %w", err)
	}
	if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on; SET LOCAL enable_seqscan = on`); err != nil {
		return a, fmt.Errorf("auditing messages: %w", err)
	}
	err = tx.QueryRow(ctx, `
		WITH owed AS (
			SELECT coalesce(b.ulid, m.ulid) AS ref, m.company_id, sum(m.segments) AS segments, count(*) AS n
			FROM messages m LEFT JOIN batches b ON b.id = m.batch_id
			WHERE NOT m.test AND m.company_id <> 0
			GROUP BY 1, 2
		), paid AS (
			SELECT ref, company_id, -amount AS segments FROM ledger WHERE kind = 'send'
		)
		SELECT coalesce(sum(o.n) FILTER (WHERE p.ref IS NULL OR p.segments <> o.segments), 0)::bigint,
			count(*) FILTER (WHERE o.ref IS NULL)
		FROM owed o FULL JOIN paid p ON p.ref = o.ref AND p.company_id = o.company_id`).Scan(&a.Unpaid, &a.Unrecorded)
	if err != nil {
		return a, fmt.Errorf("auditing debits: %w", err)
	}
	err = tx.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE o.message_id IS NULL AND (p.message_id IS NULL OR m.created_at < now() - $1::interval)
			AND (s.message_id IS NULL OR s.settled OR s.due_at < now() - interval '1 hour'))
		FROM messages m LEFT JOIN outbox o ON o.message_id = m.id
			LEFT JOIN (SELECT DISTINCT message_id FROM segments) p ON p.message_id = m.id
			LEFT JOIN sandbox s ON s.message_id = m.id
		WHERE m.status = 0`, horizon).Scan(&a.StuckPending)
	if err != nil {
		return a, fmt.Errorf("auditing pending messages: %w", err)
	}
	err = tx.QueryRow(ctx, `SELECT count(*) FROM outbox o LEFT JOIN messages m ON m.id = o.message_id
		WHERE m.id IS NULL OR m.status <> 0`).Scan(&a.OrphanQueue)
	if err != nil {
		return a, fmt.Errorf("auditing the outbox: %w", err)
	}
	return a, nil
}
