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

// What a failed statement says of the database, by its SQLSTATE
// (https://www.postgresql.org/docs/current/errcodes-appendix.html). An error
// that is none of these, a lost connection among them, is trouble with the
// database itself: the same data may be taken later.

// refused are the classes of SQLSTATE of data that will be refused again
// however often it is offered.
var refused = []string{
	"21", // cardinality violation
	"22", // data exception
	"23", // integrity constraint violation
	"44", // WITH CHECK OPTION violation
	"54", // program limit exceeded: an index row, a statement, a row too large
	"P0", // raised by a trigger of ours: the ledger is insert only
}

// Refused tells data that the database understood and will never take from a
// database in trouble. Whoever sent many rows at once may send them one by one,
// so that a bad one stops nothing else.
func Refused(err error) bool {
	code := SQLState(err)
	return len(code) >= 2 && slices.Contains(refused, code[:2])
}

// GaveWay tells that the database rolled a transaction back for another's sake
// (deadlock, serialization): nothing is wrong with it, and it may be tried
// again at once.
func GaveWay(err error) bool {
	code := SQLState(err)
	return code == "40001" || code == "40P01"
}

// Locked tells that a row or a lock was not to be had in time (lock_timeout,
// NOWAIT): somebody else keeps it.
func Locked(err error) bool { return SQLState(err) == "55P03" }

// SQLState is the five characters that PostgreSQL gave an error; "" when it did
// not come from there.
func SQLState(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}

const (
	// tries is how often a transaction is tried in all that gives way each time.
	tries = 3
	// pauseMost bounds the random pause before the next try, so that two that
	// met do not meet again.
	pauseMost = 20 * time.Millisecond
)

// Retry calls do until it does not give way, three times at most, and answers
// what it answered last. What do has set outside itself it must set anew.
func Retry(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if n == tries || !GaveWay(err) {
			return err
		}
		select {
		case <-time.After(rand.N(pauseMost)):
		case <-ctx.Done():
			return err
		}
	}
}

// InTx does something in a transaction ([Tx]), which it commits unless do fails,
// and does it again, three times at most, when the database rolled it back for
// another's sake. What do has set outside itself it must set anew; what it left
// to [Later] has happened when InTx returns.
func InTx(ctx context.Context, pool *pgxpool.Pool, do func(tx pgx.Tx) error) error {
	return Retry(ctx, func() error {
		tx, err := Begin(ctx, pool)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }() // after the commit it does nothing
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
}
