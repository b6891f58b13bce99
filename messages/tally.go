package messages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Messages are counted by day in the background: counting a company's quarter on demand would read millions of rows.
// Statuses change for days after acceptance, so chunks are counted, not events: ranges of ids, small enough to be
// counted in a fraction of a second. A chunk is counted again, less often the older it is, until all its messages are
// final. The path of a message writes no counter.
const (
	tallyChunk   = 100_000          // ids; 00203_messages.sql names it too
	tallyFresh   = 20 * time.Second // no chunk is counted more often
	tallyShare   = 20               // one unchanged for an hour is counted again after a 20th of that time
	tallySettled = 15 * time.Minute // earlier transactions have ended
)

// burundi is the day in Burundi (UTC+2) of created_at.
const burundi = `((created_at AT TIME ZONE 'UTC') + interval '2 hours')::date`

// burundiNow is today in Burundi.
const burundiNow = `((now() AT TIME ZONE 'UTC') + interval '2 hours')::date`

// Tally counts one chunk of messages that is due, the newest first, and returns whether there was one. Concurrent
// processes take different chunks.
func (s *Store) Tally(ctx context.Context) (counted bool, err error) {
	if _, err := s.pool.Exec(ctx, `INSERT INTO tally_chunks (chunk) SELECT generate_series(
		coalesce((SELECT max(chunk) + 1 FROM tally_chunks), coalesce((SELECT min(id) FROM messages), 0) / $1), coalesce((SELECT max(id) FROM messages), 0) / $1)
		ON CONFLICT DO NOTHING`, tallyChunk); err != nil {
		return false, fmt.Errorf("noting messages to count: %w", err)
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var chunk int64
		err := tx.QueryRow(ctx, `SELECT chunk FROM tally_chunks
			WHERE NOT closed AND (pending > 0 OR up_to < least((chunk + 1) * $1 - 1, (SELECT coalesce(max(id), 0) FROM messages)) OR changed_at < now() - $4::interval)
				AND counted_at < now() - greatest($2::interval, (now() - changed_at) / $3)
			ORDER BY chunk DESC LIMIT 1 FOR UPDATE SKIP LOCKED`, tallyChunk, tallyFresh, tallyShare, tallySettled).Scan(&chunk)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		counted = true
		return recount(ctx, tx, chunk)
	})
	if err != nil {
		return false, fmt.Errorf("counting messages: %w", err)
	}
	return counted, nil
}

// recount counts a chunk whose row the transaction has locked.
func recount(ctx context.Context, tx pgx.Tx, chunk int64) error {
	first, end := chunk*tallyChunk, (chunk+1)*tallyChunk
	b := &pgx.Batch{}
	b.Queue(`DELETE FROM tallies WHERE chunk = $1`, chunk)
	// The chunk's own row is written by the same statement, from the same snapshot.
	b.Queue(`WITH counts AS (
			SELECT company_id, `+burundi+` AS day, carrier, max(id) AS last,
				count(*) FILTER (WHERE status = 0) AS pending, count(*) FILTER (WHERE status = 1) AS sent, count(*) FILTER (WHERE status = 2) AS failed
			FROM messages WHERE id >= $2 AND id < $3 GROUP BY 1, 2, 3
		), seen AS (
			SELECT coalesce(max(last), 0) AS up_to, coalesce(sum(pending), 0) AS pending, coalesce((SELECT max(id) FROM messages) >= $3, false) AS passed FROM counts
		), noted AS (
			UPDATE tally_chunks c SET counted_at = now(), pending = seen.pending, up_to = seen.up_to,
				changed_at = CASE WHEN c.up_to = seen.up_to THEN c.changed_at ELSE now() END,
				closed = seen.pending = 0 AND seen.passed AND c.up_to = seen.up_to AND c.changed_at < now() - $4::interval
			FROM seen WHERE c.chunk = $1
		)
		INSERT INTO tallies (company_id, day, chunk, carrier, pending, sent, failed)
		SELECT company_id, day, $1, carrier, pending, sent, failed FROM counts WHERE company_id <> 0`, chunk, first, end, tallySettled)
	return tx.SendBatch(ctx, b).Close()
}

// Day is a company's messages of one day and carrier, by status.
type Day struct {
	Date    time.Time // midnight UTC of the day's date in Burundi
	Carrier string
	Pending int64
	Sent    int64
	Failed  int64
}

// Daily returns a company's messages by day and carrier, from the first day to the last, as counted by Tally: it may
// lack the newest half minute.
func (s *Store) Daily(ctx context.Context, company sms.CompanyID, first, last time.Time) ([]Day, error) {
	return postgres.All(ctx, s.pool, fmt.Sprintf("reading the days of company %d", company), pgx.RowToStructByPos[Day],
		`SELECT day, carrier, sum(pending)::bigint, sum(sent)::bigint, sum(failed)::bigint FROM tallies
		WHERE company_id = $1 AND day >= $2 AND day <= $3 GROUP BY day, carrier ORDER BY day, carrier`,
		int64(company), first.Format(time.DateOnly), last.Format(time.DateOnly))
}
