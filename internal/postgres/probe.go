package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// probedRoom is written to the disk of the tables by every probe, and given back at once: PostgreSQL makes a table longer
// by half of it at most, so a disk that has less room will not take a send.
const probedRoom = 1 << 20

var errReadOnly = errors.New("the database is read only")

// Probe tells whether the database can commit, which a server that answers may be unable to: its disk is full, it takes
// no writes (a standby, or a hosted one whose disk is nearly full), its synchronous standby is away. The commit touches no
// table. It costs a record of some 80 octets in the WAL, its flush (shared with the commits beside it), and probedRoom in
// a temporary file in the database's own tablespace, which is mostly gone before the disk has seen it.
func Probe(ctx context.Context, pool *pgxpool.Pool) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(`SET LOCAL work_mem = '64kB'`) // the least there is: what is more goes to a file
		batch.Queue(`SET LOCAL temp_tablespaces = ''`)
		batch.Queue(`WITH written AS MATERIALIZED (SELECT repeat('-', 8192) AS line FROM generate_series(1, $1::int)) SELECT count(line) FROM written`, probedRoom/8192)
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
	if err != nil {
		return fmt.Errorf("trying a commit: %w", err)
	}
	return nil
}
