package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tx is a transaction that saves round trips: BEGIN travels with its first statements, those left to [Later] with the
// next ones, and COMMIT with the rest. A round trip costs latency and, with one message a transaction, most of the
// message's processor time.
//
// It is a pgx.Tx for one goroutine, without nested transactions, COPY and large objects.
type Tx struct {
	conn      *pgxpool.Conn
	begun     bool // BEGIN was sent
	closed    bool
	waiting   []waiting
	committed []func()
}

// waiting is a statement whose result is not needed yet.
type waiting struct {
	*pgx.QueuedQuery
	doing string // names the work in its error
}

// Begin takes a connection out of pool for a transaction, and sends nothing yet. End the transaction by Commit or
// Rollback.
func Begin(ctx context.Context, pool *pgxpool.Pool) (*Tx, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	takeAlone(conn.Conn()) // of an earlier statement
	return &Tx{conn: conn}, nil
}

// Pipeline runs the statements of b before the next ones of tx, at the latest with its COMMIT; then their callbacks are
// called. doing names the work in errors. In a transaction that is no [Tx] they run at once.
func Pipeline(ctx context.Context, tx pgx.Tx, doing string, b *pgx.Batch) error {
	t, ok := tx.(*Tx)
	if !ok {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		return nil
	}
	if t.closed {
		return pgx.ErrTxClosed
	}
	for _, q := range b.QueuedQueries {
		t.waiting = append(t.waiting, waiting{q, doing})
	}
	return nil
}

// Backend returns the process id of PostgreSQL's server process for the transaction.
func (t *Tx) Backend() uint32 { return t.conn.Conn().PgConn().PID() }

// AfterCommit calls do when the COMMIT of tx has succeeded. It returns false, and never calls do, if tx is no [Tx].
func AfterCommit(tx pgx.Tx, do func()) bool {
	t, ok := tx.(*Tx)
	if ok {
		t.committed = append(t.committed, do)
	}
	return ok
}

// head takes the statements that must run before the next one.
func (t *Tx) head() []waiting {
	head := t.waiting
	t.waiting = nil
	if !t.begun {
		t.begun = true
		head = append([]waiting{{&pgx.QueuedQuery{SQL: "begin"}, "beginning"}}, head...)
	}
	return head
}

// send sends head and then tail in one pipeline, and reads the results of head. After an error there is nothing left to
// read.
func (t *Tx) send(ctx context.Context, head []waiting, tail ...*pgx.QueuedQuery) (pgx.BatchResults, error) {
	b := &pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, 0, len(head)+len(tail))}
	for _, w := range head {
		b.QueuedQueries = append(b.QueuedQueries, w.QueuedQuery)
	}
	b.QueuedQueries = append(b.QueuedQueries, tail...)
	results := t.conn.SendBatch(ctx, b)
	for _, w := range head {
		var err error
		if w.Fn != nil {
			err = w.Fn(results)
		} else {
			_, err = results.Exec()
		}
		if err != nil {
			_ = drop(results) // the same error, or its consequence
			return nil, fmt.Errorf("%s: %w", w.doing, err)
		}
	}
	return results, nil
}

// drop reads the remaining results and calls no callbacks.
func drop(results pgx.BatchResults) error {
	for {
		if _, err := results.Exec(); err != nil {
			return results.Close()
		}
	}
}

// SendBatch sends the statements left for later and b in one round trip.
func (t *Tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.closed {
		return failed{pgx.ErrTxClosed}
	}
	head := t.head()
	if len(head) == 0 {
		return t.conn.SendBatch(ctx, b)
	}
	results, err := t.send(ctx, head, b.QueuedQueries...)
	if err != nil {
		return failed{err}
	}
	return results
}

// Exec runs the statements left for later and this one in one round trip.
func (t *Tx) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	if t.closed {
		return tag, pgx.ErrTxClosed
	}
	head := t.head()
	if len(head) == 0 {
		return t.conn.Exec(ctx, sql, args...)
	}
	results, err := t.send(ctx, head, &pgx.QueuedQuery{SQL: sql, Arguments: args})
	if err != nil {
		return tag, err
	}
	tag, err = results.Exec()
	return tag, errors.Join(err, results.Close())
}

// Query runs the statements left for later and this one in one round trip.
func (t *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if t.begun && !t.closed && len(t.waiting) == 0 {
		return t.conn.Query(ctx, sql, args...)
	}
	b := &pgx.Batch{}
	b.Queue(sql, args...)
	results := t.SendBatch(ctx, b)
	rows, err := results.Query()
	if err != nil {
		return failedRows{err: err}, errors.Join(err, results.Close())
	}
	return &onlyRows{rows, results}, nil
}

// QueryRow runs the statements left for later and this one in one round trip.
func (t *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := t.Query(ctx, sql, args...)
	if err != nil {
		return failedRows{err: err}
	}
	return firstRow{rows}
}

// onlyRows are the rows of a pipeline's last statement; Close ends the pipeline.
type onlyRows struct {
	pgx.Rows
	pipeline pgx.BatchResults
}

func (r *onlyRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.Close()
	}
	return more
}

func (r *onlyRows) Close() {
	r.Rows.Close()
	_ = r.pipeline.Close() // its error is the rows' error
}

// firstRow scans the first of some rows.
type firstRow struct{ pgx.Rows }

func (r firstRow) Scan(dest ...any) error {
	defer r.Close()
	if !r.Next() {
		return cmp.Or(r.Err(), pgx.ErrNoRows)
	}
	if err := r.Rows.Scan(dest...); err != nil {
		return err
	}
	r.Close()
	return r.Err()
}

// Commit runs the statements left for later and commits. When one of them failed, nothing was committed. After any
// error that is not PostgreSQL's own response the outcome is unknown; so it is if somebody cancelled the wait for the
// standby ([ErrStandbyAway]).
func (t *Tx) Commit(ctx context.Context) error {
	if t.closed {
		return pgx.ErrTxClosed
	}
	if !t.begun && len(t.waiting) == 0 {
		return t.Rollback(ctx)
	}
	results, err := t.send(ctx, t.head(), &pgx.QueuedQuery{SQL: "commit"})
	if err != nil {
		return errors.Join(err, t.Rollback(ctx))
	}
	tag, err := results.Exec()
	if err = errors.Join(err, results.Close()); err == nil && tag.String() != "COMMIT" {
		err = pgx.ErrTxCommitRollback
	}
	if takeAlone(t.conn.Conn()) && err == nil {
		err = errAlone
	}
	t.release()
	if err == nil {
		for _, do := range t.committed {
			do()
		}
	}
	return err
}

// Rollback rolls back; after a Commit it does nothing.
func (t *Tx) Rollback(ctx context.Context) (err error) {
	if t.closed {
		return pgx.ErrTxClosed
	}
	if t.begun && !t.conn.Conn().IsClosed() {
		_, err = t.conn.Exec(ctx, "rollback")
	}
	t.release()
	return err
}

// release returns the connection; the pool closes one that is still in a transaction.
func (t *Tx) release() {
	t.closed, t.waiting = true, nil
	t.conn.Release()
}

// Conn returns the transaction's connection; nil when it has ended.
func (t *Tx) Conn() *pgx.Conn {
	if t.closed {
		return nil
	}
	return t.conn.Conn()
}

var errUnsupported = errors.New("postgres: not supported in this transaction")

// Begin is not supported.
func (t *Tx) Begin(context.Context) (pgx.Tx, error) { return nil, errUnsupported }

// CopyFrom is not supported.
func (t *Tx) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, errUnsupported
}

// LargeObjects is not supported.
func (t *Tx) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Prepare is not supported: statements are prepared by the connection.
func (t *Tx) Prepare(context.Context, string, string) (*pgconn.StatementDescription, error) {
	return nil, errUnsupported
}

// failed is the result of statements that did not run.
type failed struct{ err error }

func (f failed) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, f.err }
func (f failed) Query() (pgx.Rows, error)         { return failedRows{err: f.err}, f.err }
func (f failed) QueryRow() pgx.Row                { return failedRows{err: f.err} }
func (f failed) Close() error                     { return f.err }
func (f failed) Tx() pgx.Tx                       { return nil }

// failedRows are the rows of a failed statement.
type failedRows struct {
	pgx.Rows // rows with an error get no other call
	err      error
}

func (r failedRows) Close()                        {}
func (r failedRows) Err() error                    { return r.err }
func (r failedRows) CommandTag() pgconn.CommandTag { return pgconn.CommandTag{} }
func (r failedRows) Next() bool                    { return false }
func (r failedRows) Scan(...any) error             { return r.err }
