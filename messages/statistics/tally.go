package statistics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
)

// Messages are counted in the background: counting a company's quarter on demand would read millions of rows.
// Statuses change for days after acceptance, so chunks are counted, not events: ranges of ids, small enough to be
// counted in a fraction of a second. A chunk is counted again, less often the older it is, until all its messages are
// final; then its rows are added to those that are kept. The path of a message writes no counter.
const (
	tallyChunk   = 10_000           // ids; 00203_messages.sql names it too
	tallyBehind  = 10               // chunks
	tallyFresh   = 20 * time.Second // no chunk is counted more often, or sooner after it began
	tallyShare   = 20               // one unchanged for an hour is counted again after a 20th of that time
	tallySettled = 15 * time.Minute // earlier transactions have ended
)

// Tally counts one chunk of messages that is due, and returns whether there was one: the newest without a count, else
// the one that has waited longest for its measure, so none starves when counting falls behind. A new chunk is due after
// 20 seconds: until then it probably grows. Concurrent processes take different chunks.
func (s *Store) Tally(ctx context.Context) (counted bool, err error) {
	if err := s.noteChunks(ctx); err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var chunk int64
		err := tx.QueryRow(ctx, `SELECT chunk FROM tally_chunks
			WHERE NOT closed AND (`+changing+` OR changed_at < now() - $4::interval)
				AND counted_at < now() - greatest($2::interval, (now() - changed_at) / $3) AND (counted_at > '-infinity'
				OR changed_at < now() - $2::interval)
			ORDER BY extract(epoch FROM now() - nullif(counted_at, '-infinity')) / extract(epoch
			FROM greatest($2::interval, (now() - changed_at) / $3)) DESC NULLS FIRST,
				chunk DESC LIMIT 1 FOR UPDATE SKIP LOCKED`, tallyChunk, tallyFresh, tallyShare, tallySettled).Scan(&chunk)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		counted = true
		return recount(ctx, tx, chunk, true)
	})
	if err != nil {
		return false, fmt.Errorf("counting messages: %w", err)
	}
	return counted, nil
}

// noteChunks makes the rows of chunks that have none. A restored database has a gap of many millions of ids (SkipIDs):
// of the chunks before the next message only the last tallyBehind get a row, for messages that are not visible yet.
func (s *Store) noteChunks(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, `INSERT INTO tally_chunks (chunk)
		SELECT generate_series(greatest(next, (SELECT id FROM messages WHERE id >= next * $1 ORDER BY id LIMIT 1) / $1 - $2),
			(SELECT max(id) FROM messages) / $1)
		FROM (SELECT coalesce(max(chunk) + 1, 0) AS next FROM tally_chunks) n
		ON CONFLICT DO NOTHING`, tallyChunk, tallyBehind); err != nil {
		return fmt.Errorf("noting messages to count: %w", err)
	}
	return nil
}

// TallyNow counts all chunks that may have changed since their last count, the newest first, until they are counted or
// the patience is over: a report after it is of now. Other processes may count at the same time.
func (s *Store) TallyNow(ctx context.Context, patience time.Duration) error {
	start := time.Now()
	if err := s.noteChunks(ctx); err != nil {
		return err
	}
	chunks, err := postgres.All(ctx, s.pool, "looking for messages to count", pgx.RowTo[int64],
		`SELECT chunk FROM tally_chunks WHERE NOT closed AND `+changing+` ORDER BY chunk DESC`, tallyChunk)
	for _, chunk := range chunks {
		if err != nil || time.Since(start) > patience {
			break
		}
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			var open bool
			if err := tx.QueryRow(ctx, `SELECT NOT closed FROM tally_chunks WHERE chunk = $1 FOR UPDATE`, chunk).Scan(
				&open); err != nil || !open {
				return err
			}
			return recount(ctx, tx, chunk, false)
		})
	}
	if err != nil {
		return fmt.Errorf("counting messages now: %w", err)
	}
	return nil
}

// changing is a condition on a chunk: its last count is not the last one.
const changing = `(pending > 0 OR up_to < least((chunk + 1) * $1 - 1, (SELECT coalesce(max(id), 0) FROM messages)))`

// recount counts a chunk whose row the transaction has locked. It closes a chunk that is over and adds its rows to
// those that are kept; a transaction may close at most one, because two may write the same kept rows: each writes them
// once, in order. A purge's counts (mayClose is false) do not put off Tally's next one: an old chunk that is being
// purged is closed soon, and what a purge takes from a closed one needs no count.
func recount(ctx context.Context, tx pgx.Tx, chunk int64, mayClose bool) error {
	first, end := chunk*tallyChunk, (chunk+1)*tallyChunk
	b := &pgx.Batch{}
	b.Queue(ranging)
	b.Queue(`DELETE FROM tallies WHERE chunk = $1 AND chunk >= 0`, chunk)
	b.Queue(`DELETE FROM carrier_segments WHERE chunk = $1 AND chunk >= 0`, chunk)
	b.Queue(tallyStatement, chunk, first, end, tallySettled, mayClose)
	b.Queue(carriedStatement, chunk, first, end)
	return tx.SendBatch(ctx, b).Close()
}

// ranging are the planner's settings of a transaction that counts ranges of ids, whatever it knows of the tables: it
// joins them in the order of their ids and groups in memory. A hot pool's connections have neither.
const ranging = `SELECT set_config('work_mem', '32MB', true), set_config('enable_mergejoin', 'on', true),
	set_config('enable_hashjoin', 'on', true),
	set_config('enable_seqscan', 'off', true), set_config('enable_nestloop', 'off', true), set_config('enable_sort', 'off',
	true), set_config('enable_incremental_sort', 'off', true)`

func inChunk(column string) string { return column + ` >= $2 AND ` + column + ` < $3` }

// A chunk's own row is written by the statement that counts it, from the same snapshot.
var tallyStatement = `WITH counts AS MATERIALIZED (
		` + rollup(`(SELECT * FROM messages WHERE `+inChunk(`id`)+`) m`, receipts.Times(inChunk(`s.message_id`))) + `
	), seen AS (
		SELECT coalesce(max(last), 0) AS up_to, coalesce(sum(messages) FILTER (WHERE status IN (0, 3)), 0)::bigint AS pending,
			(SELECT max(id) FROM messages) >= $3 AND NOT EXISTS (
				SELECT FROM outbox WHERE message_id >= $2 AND message_id < $3) AS passed FROM counts
	), noted AS (
		UPDATE tally_chunks c SET counted_at = CASE WHEN $5 THEN now() ELSE c.counted_at END, pending = seen.pending,
			up_to = seen.up_to,
			changed_at = CASE WHEN c.up_to = seen.up_to THEN c.changed_at ELSE now() END,
			closed = $5 AND seen.pending = 0 AND coalesce(seen.passed, false) AND c.up_to = seen.up_to
			AND c.changed_at < now() - $4::interval
		FROM seen WHERE c.chunk = $1 RETURNING c.closed
	)
	INSERT INTO tallies AS t (chunk, ` + tallyColumns + `)
	SELECT CASE WHEN closed THEN ` + finalChunk + ` ELSE $1 END, n.* FROM noted, (` + withTotals("counts") +
	`) n ORDER BY ` + tallyKey + tallyAdd

var carriedStatement = `INSERT INTO carrier_segments AS t (chunk, ` + carriedKey + `, accepted, unanswered)
	SELECT CASE WHEN c.closed THEN ` + finalChunk + ` ELSE $1 END, n.* FROM tally_chunks c, (` + carriedOf(inChunk) + `) n
	WHERE c.chunk = $1 ORDER BY ` + carriedKey + carriedAdd
