package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestFailures: each real error of PostgreSQL has its class.
func TestFailures(t *testing.T) {
	pool := testenv.Pool(t)
	ctx := t.Context()
	if _, err := pool.Exec(ctx, `CREATE TABLE things (name text PRIMARY KEY, n smallint NOT NULL CHECK (n > 0)); INSERT INTO things VALUES ('a', 1)`); err != nil {
		t.Fatal(err)
	}
	holder, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := holder.Exec(ctx, `SELECT FROM things WHERE name = 'a' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for _, c := range []struct {
		what, statement          string
		args                     []any
		ctx                      context.Context
		refused, gaveWay, locked bool
	}{
		{what: "an index row too large (54000)", statement: `INSERT INTO things VALUES ($1, 1)`, args: []any{incompressible(60_000)}, refused: true},
		{what: "a number too large (22003)", statement: `INSERT INTO things VALUES ('b', 70000)`, refused: true},
		{what: "a broken constraint (23514)", statement: `INSERT INTO things VALUES ('b', 0)`, refused: true},
		{what: "a key twice (23505)", statement: `INSERT INTO things VALUES ('a', 1)`, refused: true},
		{what: "one row twice (21000)", statement: `INSERT INTO things VALUES ('b', 1), ('b', 2) ON CONFLICT (name) DO UPDATE SET n = 3`, refused: true},
		{what: "a trigger of ours (P0001)", statement: `DELETE FROM ledger`, refused: true},
		{what: "a row that is locked (55P03)", statement: `SELECT FROM things FOR UPDATE NOWAIT`, locked: true},
		{what: "a statement that takes too long (57014)", statement: `SET statement_timeout = 20; SELECT pg_sleep(10)`},
		{what: "a server that ends (57P01)", statement: `SELECT pg_terminate_backend(pg_backend_pid())`},
		{what: "a table that is missing (42P01)", statement: `SELECT FROM nowhere`},
		{what: "a client that hung up", statement: `SELECT 1`, ctx: gone},
	} {
		if c.ctx == nil {
			c.ctx = ctx
		}
		_, err := pool.Exec(c.ctx, c.statement, c.args...)
		if err == nil {
			t.Errorf("%s: no error", c.what)
			continue
		}
		err = fmt.Errorf("doing something: %w", err)
		if postgres.Refused(err) != c.refused || postgres.GaveWay(err) != c.gaveWay || postgres.Locked(err) != c.locked {
			t.Errorf("%s: refused %v, gave way %v, locked %v: %v", c.what, postgres.Refused(err), postgres.GaveWay(err), postgres.Locked(err), err)
		}
	}
	if postgres.Refused(nil) || postgres.GaveWay(nil) || postgres.Locked(nil) || postgres.Refused(&pgconn.PgError{}) {
		t.Error("nothing is something")
	}
}

// incompressible returns a text that compression does not bring under an index row's limit.
func incompressible(n int) string {
	var b strings.Builder
	for i := uint32(1); b.Len() < n; i++ {
		fmt.Fprintf(&b, "%08x", i*2654435761)
	}
	return b.String()[:n]
}

// TestDeadlockIsTriedAgain: two transactions that deadlock both succeed.
func TestDeadlockIsTriedAgain(t *testing.T) {
	pool := testenv.Pool(t)
	ctx := t.Context()
	if _, err := pool.Exec(ctx, `CREATE TABLE things (id int PRIMARY KEY, n int NOT NULL); INSERT INTO things VALUES (1, 0), (2, 0)`); err != nil {
		t.Fatal(err)
	}
	met := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	errs := make(chan error, 2)
	tried := make([]int, 2)
	for i := range 2 {
		go func() {
			errs <- postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
				tried[i]++
				if _, err := tx.Exec(ctx, `UPDATE things SET n = n + 1 WHERE id = $1`, i+1); err != nil {
					return err
				}
				if tried[i] == 1 { // at first, both have locked a row before either locks its second
					close(met[i])
					select {
					case <-met[1-i]:
					case <-ctx.Done():
					}
				}
				_, err := tx.Exec(ctx, `UPDATE things SET n = n + 1 WHERE id = $1`, 2-i)
				return err
			})
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	var sum int
	if err := pool.QueryRow(ctx, `SELECT sum(n) FROM things`).Scan(&sum); err != nil || sum != 4 {
		t.Errorf("%d updates, %v; want 4", sum, err)
	}
	if tried[0]+tried[1] < 3 {
		t.Errorf("tried %v times: there was no deadlock", tried)
	}
}

// TestRetryEnds: a transaction that gives way each time is given up; other errors are not tried again.
func TestRetryEnds(t *testing.T) {
	other := errors.New("other")
	for want, failure := range map[int]error{3: &pgconn.PgError{Code: "40P01"}, 1: other} {
		n := 0
		err := postgres.Retry(t.Context(), func() error { n++; return failure })
		if !errors.Is(err, failure) || n != want {
			t.Errorf("%v: %d tries and %v, want %d", failure, n, err, want)
		}
	}
}
