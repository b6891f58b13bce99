package postgres_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// countingPool returns a pool of one connection that counts its writes: the round trips.
func countingPool(t *testing.T) (*pgxpool.Pool, *atomic.Int64) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(testenv.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	sent := new(atomic.Int64)
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return countingConn{conn, sent}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE notes (n int PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	return pool, sent
}

type countingConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countingConn) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

func batch(statements ...string) *pgx.Batch {
	b := &pgx.Batch{}
	for _, sql := range statements {
		b.Queue(sql)
	}
	return b
}

func notes(t *testing.T, pool *pgxpool.Pool) (list []int) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT n FROM notes ORDER BY n`)
	if err != nil {
		t.Fatal(err)
	}
	if list, err = pgx.CollectRows(rows, pgx.RowTo[int]); err != nil {
		t.Fatal(err)
	}
	return list
}

func expectNotes(t *testing.T, pool *pgxpool.Pool, want ...int) {
	t.Helper()
	got := notes(t, pool)
	if len(got) != len(want) {
		t.Errorf("the table has %v, not %v", got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("the table has %v, not %v", got, want)
			return
		}
	}
}

// TestTxRoundTrips: BEGIN, statements left for later and COMMIT cost no round trips of their own.
func TestTxRoundTrips(t *testing.T) {
	pool, sent := countingPool(t)
	work := func() (called int) {
		err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue(`INSERT INTO notes VALUES (1) RETURNING n`).QueryRow(func(row pgx.Row) error { return row.Scan(&called) })
			if err := postgres.Pipeline(t.Context(), tx, "the first", b); err != nil {
				return err
			}
			if called != 0 {
				t.Error("it was not left for later")
			}
			if err := tx.SendBatch(t.Context(), batch(`INSERT INTO notes VALUES (2)`,
				`INSERT INTO notes VALUES (3)`)).Close(); err != nil {
				return err
			}
			if called != 1 {
				t.Error("the deferred statement has not run before the next statement")
			}
			return postgres.Pipeline(t.Context(), tx, "the last", batch(`INSERT INTO notes VALUES (4)`))
		})
		if err != nil {
			t.Fatal(err)
		}
		return called
	}
	work() // prepares the statements
	expectNotes(t, pool, 1, 2, 3, 4)
	if _, err := pool.Exec(t.Context(), `DELETE FROM notes`); err != nil {
		t.Fatal(err)
	}
	before := sent.Load()
	work()
	if trips := sent.Load() - before; trips != 2 {
		t.Errorf("%d round trips", trips)
	}
	before = sent.Load()
	if err := postgres.InTx(t.Context(), pool, func(pgx.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if trips := sent.Load() - before; trips != 0 {
		t.Errorf("%d round trips for nothing", trips)
	}
}

// TestTxFails: after any failure nothing is written, the error names the work, and the connection is usable.
func TestTxFails(t *testing.T) {
	pool, _ := countingPool(t)
	ctx := t.Context()
	if _, err := pool.Exec(ctx, `INSERT INTO notes VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	mine := errors.New("mine")
	again := `INSERT INTO notes VALUES (1)`
	for name, c := range map[string]struct {
		do     func(tx pgx.Tx) error
		code   string // SQLSTATE
		prefix string
	}{
		"the first statement": {func(tx pgx.Tx) error { _, err := tx.Exec(ctx, again); return err }, "23505", ""},
		"a later statement": {func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO notes VALUES (2)`); err != nil {
				return err
			}
			return tx.SendBatch(ctx, batch(`INSERT INTO notes VALUES (3)`, again, `INSERT INTO notes VALUES (4)`)).Close()
		}, "23505", ""},
		"a deferred statement, at the next statement": {func(tx pgx.Tx) error {
			if err := postgres.Pipeline(ctx, tx, "noting", batch(again)); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO notes VALUES (2)`)
			return err
		}, "23505", "noting: "},
		"a deferred statement, at a query": {func(tx pgx.Tx) error {
			if err := postgres.Pipeline(ctx, tx, "noting", batch(again)); err != nil {
				return err
			}
			var n int
			return tx.QueryRow(ctx, `SELECT 1`).Scan(&n)
		}, "23505", "noting: "},
		"a deferred statement, at a batch": {func(tx pgx.Tx) error {
			if err := postgres.Pipeline(ctx, tx, "noting", batch(again)); err != nil {
				return err
			}
			return tx.SendBatch(ctx, batch(`INSERT INTO notes VALUES (2)`)).Close()
		}, "23505", "noting: "},
		"a deferred statement, at the commit": {func(tx pgx.Tx) error {
			return postgres.Pipeline(ctx, tx, "noting",
				batch(`INSERT INTO notes VALUES (2)`, again, `INSERT INTO notes VALUES (3)`))
		}, "23505", "noting: "},
		"an error of do": {func(tx pgx.Tx) error {
			if err := postgres.Pipeline(ctx, tx, "noting", batch(`INSERT INTO notes VALUES (2)`)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `INSERT INTO notes VALUES (3)`); err != nil {
				return err
			}
			return mine
		}, "", ""},
		"an ignored error": {func(tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, again) // the commit fails
			return nil
		}, "", ""},
	} {
		err := postgres.InTx(ctx, pool, c.do)
		if err == nil || postgres.SQLState(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
		if c.prefix != "" && (err == nil || len(err.Error()) < len(c.prefix) || err.Error()[:len(c.prefix)] != c.prefix) {
			t.Errorf("%s: the error is %v", name, err)
		}
		expectNotes(t, pool, 1)
	}
}

// TestTxEnds: an ended transaction does nothing more. A connection that is lost in the middle, or at the commit, is an
// error and is not used again.
func TestTxEnds(t *testing.T) {
	pool, _ := countingPool(t)
	ctx := t.Context()
	tx, err := postgres.Begin(ctx, pool)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Error(err)
	}
	_, execErr := tx.Exec(ctx, `SELECT 1`)
	rows, queryErr := tx.Query(ctx, `SELECT 1`)
	rows.Close()
	for what, err := range map[string]error{
		"exec": execErr, "query": queryErr, "row": tx.QueryRow(ctx, `SELECT 1`).Scan(new(int)),
		"batch": tx.SendBatch(ctx, batch(`SELECT 1`)).Close(),
		"later": postgres.Pipeline(ctx, tx, "late", batch(`SELECT 1`)), "commit": tx.Commit(ctx),
		"rollback": tx.Rollback(ctx),
	} {
		if !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("%s after the end: %v", what, err)
		}
	}

	other, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(ctx)
	cut := func(tx *postgres.Tx) { // by the server
		t.Helper()
		if _, err := tx.Exec(ctx, `SELECT 1`); err != nil {
			t.Fatal(err)
		}
		pid := tx.Conn().PgConn().PID()
		for end, there := time.Now().Add(30*time.Second), true; there; {
			if err := other.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity
				WHERE pid = $1::bigint`, pid).Scan(&there); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(end) {
				t.Fatal("its connection does not end")
			}
		}
	}
	for what, end := range map[string]func(*postgres.Tx) error{
		"a statement": func(tx *postgres.Tx) error { _, err := tx.Exec(ctx, `INSERT INTO notes VALUES (2)`); return err },
		"a commit":    func(tx *postgres.Tx) error { return tx.Commit(ctx) },
		"a commit with deferred statements": func(tx *postgres.Tx) error {
			if err := postgres.Pipeline(ctx, tx, "noting", batch(`INSERT INTO notes VALUES (3)`)); err != nil {
				return err
			}
			return tx.Commit(ctx)
		},
	} {
		func() {
			tx, err := postgres.Begin(ctx, pool)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(ctx) }() // else the pool waits for it without end
			cut(tx)
			if err := end(tx); err == nil {
				t.Errorf("%s on a lost connection succeeds", what)
			}
		}()
		expectNotes(t, pool)
	}

	limited, cancel := context.WithCancel(ctx)
	err = postgres.InTx(limited, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(limited, `INSERT INTO notes VALUES (4)`); err != nil {
			return err
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before its commit: %v", err)
	}
	expectNotes(t, pool)
}
