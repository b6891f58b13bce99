package statistics

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
)

// Aside adds the counts of leaving messages whose chunk is still open to those that are kept. It returns these chunks,
// to be counted again ([Recount]) once the messages are deleted; a closed chunk's were kept when it closed. waiting are
// old messages that stay.
func Aside(ctx context.Context, tx pgx.Tx, leaving, waiting []int64) (open []int64, err error) {
	chunks, err := postgres.All(ctx, tx, "noting chunks to count", pgx.RowTo[int64], `WITH chunk AS MATERIALIZED (
			SELECT DISTINCT id / $2 AS n
				FROM unnest($1::bigint[]) id -- of all that were read: Tally begins after the highest chunk
		), noted AS (
			INSERT INTO tally_chunks (chunk) SELECT n FROM chunk ON CONFLICT DO NOTHING
		)
		SELECT n FROM chunk`, slices.Concat(leaving, waiting), tallyChunk)
	if err != nil {
		return nil, err
	}
	if open, err = postgres.All(ctx, tx, "locking tallies", pgx.RowTo[int64],
		`SELECT chunk FROM tally_chunks WHERE chunk = ANY($1) AND NOT closed ORDER BY chunk FOR UPDATE`,
		chunks); err != nil || len(open) == 0 {
		return nil, err
	}
	leaving = slices.DeleteFunc(slices.Clone(leaving),
		func(id int64) bool { return !slices.Contains(open, id/tallyChunk) })
	b := &pgx.Batch{}
	b.Queue(asideStatement, leaving)
	b.Queue(asideCarried, leaving)
	return open, tx.SendBatch(ctx, b).Close()
}

// Recount counts the chunks that Aside returned.
func Recount(ctx context.Context, tx pgx.Tx, open []int64) error {
	for _, chunk := range open {
		if err := recount(ctx, tx, chunk, false); err != nil {
			return err
		}
	}
	return nil
}

func isLeaving(column string) string { return column + ` = ANY($1)` }

var asideStatement = `WITH counts AS MATERIALIZED (` + rollup(`(SELECT * FROM messages WHERE `+isLeaving(`id`)+`) m`,
	receipts.Times(isLeaving(`s.message_id`))) + `)
	INSERT INTO tallies AS t (chunk, ` + tallyColumns + `)
	SELECT ` + finalChunk + `, n.* FROM (` + withTotals("counts") + `) n ORDER BY ` + tallyKey + tallyAdd

var asideCarried = `INSERT INTO carrier_segments AS t (chunk, ` + carriedKey + `, accepted, unanswered)
	SELECT ` + finalChunk + `, n.* FROM (` + carriedOf(isLeaving) + `) n ORDER BY ` + carriedKey + carriedAdd
