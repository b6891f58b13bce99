package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Classes of database errors, by SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html). Any other
// error, such as a lost connection, is an outage: the same data may be accepted later.

// refused are the classes of data that the database never accepts.
var refused = []string{
	"21", // cardinality violation
	"22", // data exception
	"23", // integrity constraint violation
	"44", // WITH CHECK OPTION violation
	"54", // program limit exceeded: an index row, a statement, a row too large
	"P0", // raised by our triggers: ledger and audit_log are insert only
}

// Refused reports whether the database will never accept the data. A caller that sent many rows may send them one by
// one, so that a bad row does not stop the others.
func Refused(err error) bool {
	code := SQLState(err)
	return len(code) >= 2 && slices.Contains(refused, code[:2])
}

// GaveWay reports whether the database rolled a transaction back because of another one (deadlock, serialization
// failure). It may be tried again at once.
func GaveWay(err error) bool {
	code := SQLState(err)
	return code == "40001" || code == "40P01"
}

// Locked reports whether a lock was not available in time (lock_timeout, NOWAIT).
func Locked(err error) bool { return SQLState(err) == "55P03" }

// RolledBack reports whether a COMMIT failed with PostgreSQL's own response that the transaction was rolled back.
func RolledBack(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, pgx.ErrTxCommitRollback) || ok && pgErr.SeverityUnlocalized == "ERROR"
}

// SQLState returns an error's SQLSTATE, five characters; "" when the error is not from PostgreSQL.
func SQLState(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}

const (
	// maxTries is how often a transaction is tried.
	maxTries = 3
	// maxPause is the longest random pause before the next try, so that two transactions do not collide again.
	maxPause = 20 * time.Millisecond
)

// Retry calls do again while it gives way (GaveWay), at most three times in all, and returns its last error. do must
// reset the outer variables that it sets.
func Retry(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if n == maxTries || !GaveWay(err) {
			return err
		}
		select {
		case <-time.After(rand.N(maxPause)):
		case <-ctx.Done():
			return err
		}
	}
}

// InTx calls do in a transaction ([Tx]) and commits it unless do fails. When the transaction gives way (GaveWay), it
// tries again, at most three times in all. do must reset the outer variables that it sets. Statements left to [Later]
// have run when InTx returns.
func InTx(ctx context.Context, pool *pgxpool.Pool, do func(tx pgx.Tx) error) error {
	return Retry(ctx, func() error {
		tx, err := Begin(ctx, pool)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }() // no effect after the commit
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
}
