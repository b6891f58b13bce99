package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// probeBytes is how much each probe writes to the tables' disk and frees at once. PostgreSQL extends a table by at most
// half of it: a disk with less free space cannot store a send.
const probeBytes = 1 << 20

var errReadOnly = errors.New("the database is read only")

// Probe returns nil if the database can commit. A server that responds may be unable to: its disk is full, it is
// read-only (a standby, or a hosted one whose disk is nearly full), or its synchronous standby is away. The commit
// touches no table. It costs a WAL record of about 80 bytes, its flush (shared with concurrent commits), and probeBytes
// in a temporary file in the database's own tablespace, which is usually deleted before it reaches the disk.
func Probe(ctx context.Context, pool *pgxpool.Pool) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(`SET LOCAL work_mem = '64kB'`) // the minimum: larger data goes to a file
		batch.Queue(`SET LOCAL temp_tablespaces = ''`)
		batch.Queue(`WITH written AS MATERIALIZED (SELECT repeat('-', 8192) AS line FROM generate_series(1, $1::int))
			SELECT count(line) FROM written`, probeBytes/8192)
		batch.Queue(`SELECT pg_logical_emit_message(true, 'intumwa', '')`)
		batch.Queue(`SELECT current_setting('transaction_read_only')::bool`).QueryRow(func(row pgx.Row) error {
			var readOnly bool
			if err := row.Scan(&readOnly); err != nil || !readOnly {
				return err
			}
			return errReadOnly
		})
		return tx.SendBatch(ctx, &batch).Close()
	})
	if errors.Is(err, errReadOnly) {
		pool.Reset() // the next session may be writable
	}
	if err != nil {
		return fmt.Errorf("trying a commit: %w", err)
	}
	return nil
}
