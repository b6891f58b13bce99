package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Classes of database errors, by SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html). TestRefused
// has a decision for each class.

// refused are the only classes that speak of the data itself. Any other error passes: a full disk, used up transaction
// ids, a restart, a read-only server, a trigger or a privilege of an operator. The same data may be accepted later, so
// nobody may acknowledge, drop or refuse it because of such an error.
var refused = []string{
	"21", // cardinality violation: one statement with a row twice
	"22", // data exception
	"23", // integrity constraint violation
}

// sequenceFull is in class 22, and says nothing about the data.
const sequenceFull = "2200H"

// Refused reports whether the database will never accept the data. A caller that sent many rows may send them one by
// one, so that a bad row does not stop the others.
func Refused(err error) bool {
	code := SQLState(err)
	return len(code) == 5 && code != sequenceFull && slices.Contains(refused, code[:2])
}

// Withheld reports whether the server has a function not at all, or not for this role, as hosted servers do.
func Withheld(err error) bool {
	return slices.Contains([]string{"42501", "42883", "0A000"}, SQLState(err))
}

// GaveWay reports whether the database rolled a transaction back because of another one (deadlock, serialization
// failure). It may be tried again at once.
func GaveWay(err error) bool {
	code := SQLState(err)
	return code == "40001" || code == "40P01"
}

// Locked reports whether a lock was not available in time (lock_timeout, NOWAIT).
func Locked(err error) bool { return SQLState(err) == "55P03" }

// RolledBack reports whether a COMMIT failed with PostgreSQL's own response that the transaction was rolled back. A
// proxy that lost its server, and 40003, do not know.
func RolledBack(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, pgx.ErrTxCommitRollback) || ok && pgErr.SeverityUnlocalized == "ERROR" &&
		!strings.HasPrefix(pgErr.Code, "08") && !strings.HasPrefix(pgErr.Code, "57P") && pgErr.Code != "40003"
}

const readOnly = "25006"

// spent reports whether an error ends the use of its session: it may be read-only for all its life
// (default_transaction_read_only of a database or role, a demoted server behind a proxy), or its server has gone.
func spent(code string) bool {
	return code == readOnly || code == "57P01" || code == "57P02" || code == "57P03" || strings.HasPrefix(code, "08")
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
