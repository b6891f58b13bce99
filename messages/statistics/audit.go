package statistics

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages/receipts"
)

// Audit counts faults by kind. All but Purged should be 0.
type Audit struct {
	// Unpaid counts live messages without their debit: no ledger row of the request, or one with another amount than
	// the request's segments.
	Unpaid int64
	// Unrecorded counts debits without their messages, and debits of purged messages that differ from the recorded
	// sums.
	Unrecorded int64
	// StuckPending counts pending messages that no task will decide: not in the outbox or scheduled and without a
	// segment at a carrier, or past the time when the sweep, or the sandbox's task, should have decided them.
	StuckPending int64
	// OrphanQueue counts rows of outbox and scheduled without a pending message.
	OrphanQueue int64
	// Reports counts companies whose kept counts ([Store.Quality]) differ from their messages: of live messages, what is
	// purged and what is in closed ranges of ids, in messages and in segments. Segments are proved against the ledger
	// by the other figures.
	Reports int64
	// Purged counts purged live messages, which are not faults.
	Purged int64
}

// Audit proves that every live message was paid and every payment has its messages, purged ones included (by their
// number, their credits and a mark that no other requests have), and that every pending message will be decided.
// horizon is the age at which a message must be final (validity, receipt timeout and some grace). It reads everything
// in one snapshot and may take minutes on a large database.
func (s *Store) Audit(ctx context.Context, horizon time.Duration) (Audit, error) {
	var a Audit
	b := &pgx.Batch{}
	b.Queue(`SELECT set_config('statement_timeout', '0', true), set_config('enable_hashjoin', 'on', true),
		set_config('enable_mergejoin', 'on', true), set_config('enable_seqscan', 'on', true)`)
	b.Queue(`
		WITH owed AS (
			SELECT coalesce(b.ulid, m.ulid) AS ref, m.company_id, sum(m.segments) AS segments, count(*) AS n
			FROM messages m LEFT JOIN batches b ON b.id = m.batch_id
			WHERE NOT m.test AND m.company_id <> 0
			GROUP BY 1, 2
		), paid AS (
			SELECT ref, company_id, -sum(amount)::bigint AS segments FROM ledger WHERE kind = 'send'
				GROUP BY 1, 2 -- a campaign is paid in parts
		), strays AS MATERIALIZED (
			SELECT o.ref AS owed_ref, o.segments AS owed, o.n, p.ref AS paid_ref, p.segments AS paid, p.company_id
			FROM owed o FULL JOIN paid p ON p.ref = o.ref AND p.company_id = o.company_id
			WHERE o.ref IS NULL OR p.ref IS NULL OR p.segments <> o.segments
		), gone AS (
			SELECT company_id, count(*) AS requests, sum(paid)::bigint AS segments, sum(purge_mark(paid_ref, paid)) AS mark
			FROM strays WHERE owed_ref IS NULL GROUP BY company_id
		)
		SELECT (SELECT coalesce(sum(n), 0)::bigint FROM strays WHERE owed_ref IS NOT NULL),
			(SELECT coalesce(sum(greatest(abs(coalesce(g.requests, 0) - coalesce(p.requests, 0)), 1)), 0)::bigint
				FROM gone g FULL JOIN purged p USING (company_id)
				WHERE (g.requests, g.segments, g.mark) IS DISTINCT FROM (p.requests, p.segments, p.mark)),
			(SELECT coalesce(sum(messages), 0)::bigint FROM purged)`).QueryRow(
		func(row pgx.Row) error { return row.Scan(&a.Unpaid, &a.Unrecorded, &a.Purged) })
	b.Queue(`
		WITH kept AS (
			SELECT company_id, sum(messages) AS messages, sum(segments) AS segments FROM tallies WHERE chunk = `+finalChunk+
		` AND company_id <> 0 AND kind <> 2 GROUP BY 1
		), real AS (
			SELECT company_id, sum(messages) AS messages, sum(segments) AS segments FROM (
				SELECT company_id, messages, segments FROM purged
				UNION ALL
				SELECT m.company_id, count(*), sum(m.segments) FROM messages m JOIN tally_chunks c ON c.chunk = m.id / $1
					AND c.closed
				WHERE NOT m.test AND m.company_id <> 0 GROUP BY 1
			) r GROUP BY 1
		)
		SELECT count(*) FROM kept k FULL JOIN real r USING (company_id) WHERE (k.messages, k.segments) IS DISTINCT
			FROM (r.messages, r.segments)`, tallyChunk).
		QueryRow(func(row pgx.Row) error { return row.Scan(&a.Reports) })
	b.Queue(`
		SELECT count(*) FILTER (WHERE o.message_id IS NULL AND l.message_id IS NULL
			AND (p.message_id IS NULL OR (d.message_id IS NULL AND m.created_at < now() - $1::interval)
			OR d.look_at < now() - interval '1 hour')
			AND (s.message_id IS NULL OR s.settled OR s.due_at < now() - interval '1 hour'))
		FROM messages m LEFT JOIN outbox o ON o.message_id = m.id
			LEFT JOIN `+receipts.Submitted+` p ON p.message_id = m.id
			LEFT JOIN sandbox s ON s.message_id = m.id
			LEFT JOIN scheduled l ON l.message_id = m.id
			LEFT JOIN deadlines d ON d.message_id = m.id
		WHERE m.status = 0`, horizon).QueryRow(func(row pgx.Row) error { return row.Scan(&a.StuckPending) })
	b.Queue(`SELECT count(*) FROM (SELECT message_id FROM outbox UNION ALL SELECT message_id FROM scheduled) o
		LEFT JOIN messages m ON m.id = o.message_id WHERE m.id IS NULL OR m.status <> 0`).
		QueryRow(func(row pgx.Row) error { return row.Scan(&a.OrphanQueue) })
	if err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			return tx.SendBatch(ctx, b).Close()
		}); err != nil {
		return Audit{}, fmt.Errorf("auditing messages: %w", err)
	}
	return a, nil
}
