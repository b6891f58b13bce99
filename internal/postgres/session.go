package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrPooled means that sessions are needed and a pooler in between (PgBouncer) does not
// leave them to us: what is locked, prepared or set in one would be another's at the next
// transaction.
var ErrPooled = errors.New("a pooler (PgBouncer) in between does not leave us sessions of our own")

// ErrElsewhere means that two URLs of one installation lead to different databases.
var ErrElsewhere = errors.New("they lead to different databases")

// ErrNoTransactions means that a pooler lends sessions for less than a transaction.
var ErrNoTransactions = errors.New("the pooler does not keep a session for the length of a transaction")

// refusedByPooler tells PgBouncer by how it refuses what a session of ours begins with.
// It knows a few settings, and PostgreSQL takes all of them.
func refusedByPooler(err error) error {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(pgErr.Message, "unsupported startup parameter") {
		return fmt.Errorf("%w: %s", ErrPooled, pgErr.Message)
	}
	return err
}

// looks is how often two connections are compared: while others use the pooler, sessions
// change hands, and one look may show nothing.
const looks = 16

// checkOwn returns ErrPooled when the session behind conn is not its own.
//
// Without a pooler the number of the session's process is that which the server gave when
// the connection was made; a pooler gives numbers of its own. Then a second connection is
// made: in transaction mode both are lent the session that was used last, or conn gets
// another one while that is taken. A pooler that keeps sessions apart must leave them
// their settings.
func checkOwn(ctx context.Context, conn *pgx.Conn) error {
	first, err := process(ctx, conn)
	if err != nil || first == conn.PgConn().PID() {
		return err
	}
	other, err := pgx.ConnectConfig(ctx, conn.Config())
	if err != nil {
		return fmt.Errorf("connecting a second time, since there is a pooler: %w", err)
	}
	defer func() { _ = other.Close(ctx) }() // nothing is left to be done there
	for range looks {
		shared, err := share(ctx, conn, other)
		switch {
		case err != nil:
			return err
		case shared:
			return fmt.Errorf("%w: it is in transaction mode", ErrPooled)
		}
	}
	lost, err := lostSettings(ctx, conn, conn.Config().RuntimeParams)
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("%w: it drops their settings (%s)", ErrPooled, strings.Join(lost, ", "))
	}
	return err
}

// ownSession makes a connection that has a session of its own; the caller closes it.
func ownSession(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, time.Duration(1+len(config.Fallbacks))*connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(limited, config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the database: %w", refusedByPooler(err))
	}
	if err := checkOwn(limited, conn); err != nil {
		_ = conn.Close(limited) // the first error counts
		return nil, err
	}
	return conn, nil
}

// process is the number of the server's process that answers.
func process(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return 0, fmt.Errorf("asking which session it is: %w", err)
	}
	return pid, nil
}

// share reports whether two open connections are seen to use one session.
func share(ctx context.Context, a, b *pgx.Conn) (shared bool, err error) {
	before, err := process(ctx, a)
	if err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, b, func(tx pgx.Tx) error {
		taken, err := process(ctx, tx.Conn())
		if err != nil || taken == before {
			shared = err == nil
			return err
		}
		now, err := process(ctx, a)
		shared = err == nil && now != before
		return err
	})
	return shared, err
}

// lostSettings are the names of those that do not hold. Values are compared as PostgreSQL
// writes them.
func lostSettings(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, settings map[string]string,
) ([]string, error) {
	var names, values []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !strings.HasPrefix(name, "tcp_") && name != "options" { // the first are 0 at a socket
			names, values = append(names, name), append(values, settings[name])
		}
	}
	rows, err := db.Query(ctx, `SELECT name FROM (SELECT name, current_setting(name) AS have, set_config(name, value, true) AS want
			FROM unnest($1::text[], $2::text[]) s(name, value)) s WHERE have <> want ORDER BY name`, pgx.QueryExecModeExec, names, values)
	if err != nil {
		return nil, fmt.Errorf("comparing a session's settings: %w", err)
	}
	lost, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("comparing a session's settings: %w", err)
	}
	return lost, nil
}

// checkLent finds out whether a pooler's connection is good for a transaction: whether it
// keeps its session so long, and has there what the transaction has brought along.
func checkLent(ctx context.Context, conn *pgxpool.Conn) error {
	l, ok := conn.Conn().PgConn().Conn().(*lent)
	if !ok {
		return errors.New("postgres: a connection that is not made for a pooler")
	}
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		first, err := process(ctx, tx.Conn())
		if err != nil {
			return err
		}
		lost, err := lostSettings(ctx, tx, l.settings)
		if err != nil {
			return err
		}
		second, err := process(ctx, tx.Conn())
		if err == nil && (first != second || len(lost) > 0) {
			err = ErrNoTransactions
		}
		return err
	})
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(pgErr.Message, "transaction blocks not allowed") { // PgBouncer
		return fmt.Errorf("%w: %s", ErrNoTransactions, pgErr.Message)
	}
	return err
}

// togetherLock is the first key of Together's advisory locks.
const togetherLock = 0x746f6765

// Together returns ErrElsewhere unless what is locked in a session of the first pool is
// seen through the second: then they lead to one database of one server. (A standby has
// the same data, names and numbers, and not the locks.)
func Together(ctx context.Context, sessions, pool *pgxpool.Pool) error {
	conn, err := sessions.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	defer conn.Release()
	key := rand.Int32() // not a secret, only unlikely to be somebody else's
	var locked, seen bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, togetherLock, key).Scan(&locked); err != nil {
		return fmt.Errorf("taking a lock: %w", err)
	}
	defer func() { _, _ = conn.Exec(ctx, `SELECT pg_advisory_unlock($1, $2)`, togetherLock, key) }() // else it ends with the connection
	if err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND classid::bigint = $1::bigint AND objid::bigint = $2::bigint)`,
		togetherLock, key).Scan(&seen); err != nil {
		return fmt.Errorf("looking for a lock: %w", err)
	}
	if !locked || !seen {
		return ErrElsewhere
	}
	return nil
}
