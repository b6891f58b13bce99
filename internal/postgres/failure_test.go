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
	if _, err := pool.Exec(ctx, `CREATE TABLE things (name text PRIMARY KEY, n smallint NOT NULL CHECK (n > 0)); INSERT
		INTO things VALUES ('a', 1)`); err != nil {
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
		{what: "an index row too large (54000)", statement: `INSERT INTO things VALUES ($1, 1)`,
			args: []any{incompressible(60_000)}},
		{what: "a number too large (22003)", statement: `INSERT INTO things VALUES ('b', 70000)`, refused: true},
		{what: "a broken constraint (23514)", statement: `INSERT INTO things VALUES ('b', 0)`, refused: true},
		{what: "a key twice (23505)", statement: `INSERT INTO things VALUES ('a', 1)`, refused: true},
		{what: "one row twice (21000)", statement: `INSERT INTO things VALUES ('b', 1), ('b', 2) ON CONFLICT (name) DO UPDATE
			SET n = 3`, refused: true},
		{what: "a sequence at its end (2200H)", statement: `CREATE SEQUENCE ends MAXVALUE 2; SELECT nextval('ends')
			FROM generate_series(1, 3)`},
		{what: "a trigger of ours (P0001)", statement: `DELETE FROM ledger`},
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
			t.Errorf("%s: refused %v, gave way %v, locked %v: %v", c.what, postgres.Refused(err), postgres.GaveWay(err),
				postgres.Locked(err), err)
		}
	}
	if postgres.Refused(nil) || postgres.GaveWay(nil) || postgres.Locked(nil) || postgres.Refused(&pgconn.PgError{}) {
		t.Error("nothing is something")
	}
}

// TestRefused: of all classes of SQLSTATE, only those that speak of the data refuse it for good. Each error is one of a
// real server.
func TestRefused(t *testing.T) {
	pool := testenv.Pool(t)
	for _, c := range []struct {
		why     string
		codes   []string
		refused bool
	}{
		{"warnings and no data", []string{"01000", "02000", "03000"}, false},
		{"the connection, or a proxy's server", []string{"08000", "08003", "08006", "08001", "08004", "08007", "08P01"},
			false},
		{"a trigger's action", []string{"09000"}, false},
		{"another release of the server or the schema, until the end of an upgrade", []string{"0A000"}, false},
		{"our own statements, never the data", []string{"0B000", "0F000", "0F001", "0L000", "0LP01", "0P000", "0Z000",
			"0Z002", "20000", "24000", "26000", "27000",
			"2F000", "2F003", "34000", "36000", "38000", "38004", "39000", "39P01", "3B000", "3B001"}, false},
		{"one statement with a row twice: each alone passes", []string{"21000"}, true},
		{"the data", []string{"22000", "22001", "22003", "22008", "2200G", "22021", "22023", "22P02", "22P05"}, true},
		{"a sequence at its end", []string{"2200H"}, false},
		{"a constraint", []string{"23000", "23001", "23502", "23503", "23505", "23514", "23P01"}, true},
		{"the state of the transaction; the server is read-only",
			[]string{"25000", "25001", "25006", "25P01", "25P02", "25P03", "25P04"}, false},
		{"who we are and what we may do: an operator changes it",
			[]string{"28000", "28P01", "2B000", "2BP01", "2D000", "3D000", "3F000", "42501"}, false},
		{"another transaction", []string{"40000", "40001", "40002", "40003", "40P01"}, false},
		{"the schema: renamed, not migrated yet, dropped", []string{"42000", "42601", "42703", "42704", "42883", "42P01",
			"42P22"}, false},
		{"a view's check: we have none, an operator may", []string{"44000"}, false},
		{"disk, memory, connections", []string{"53000", "53100", "53200", "53300", "53400"}, false},
		{"limits, also of transaction ids (54000); ours are shorter", []string{"54000", "54001", "54011", "54023"}, false},
		{"locks and states", []string{"55000", "55006", "55P02", "55P03", "55P04"}, false},
		{"an operator, a restart, a timeout, recovery", []string{"57000", "57014", "57P01", "57P02", "57P03", "57P04",
			"57P05"}, false},
		{"the system under the server", []string{"58000", "58030", "58P01", "58P02", "58P03"}, false},
		{"a snapshot, the configuration, a foreign server", []string{"72000", "F0000", "F0001", "HV000", "HV00N"}, false},
		{"a trigger of an operator", []string{"P0000", "P0001", "P0002", "P0004"}, false},
		{"a fault or corruption", []string{"XX000", "XX001", "XX002"}, false},
		{"no class that we know", []string{"00000", "99999", "ZZ001"}, false},
	} {
		for _, code := range c.codes {
			var err error = &pgconn.PgError{Code: code}
			if code != "00000" { // that the server cannot raise
				_, err = pool.Exec(t.Context(), `DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '`+code+`'; END $$`)
			}
			if got := postgres.SQLState(err); got != code {
				t.Errorf("%s came as %q: %v", code, got, err)
			}
			if postgres.Refused(err) != c.refused {
				t.Errorf("%s (%s): refused %v", code, c.why, !c.refused)
			}
		}
	}
}

// TestRolledBack: after which errors of a COMMIT its transaction is certainly gone.
func TestRolledBack(t *testing.T) {
	for code, want := range map[string]bool{"23505": true, "25006": true, "40001": true, "53100": true, "XX000": true,
		"40003": false, "08006": false, "08007": false, "08P01": false, "57P01": false, "57P03": false} {
		if got := postgres.RolledBack(&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: code}); got != want {
			t.Errorf("%s: %v", code, got)
		}
		if postgres.RolledBack(&pgconn.PgError{SeverityUnlocalized: "FATAL", Code: code}) {
			t.Errorf("%s is fatal: the outcome is not known", code)
		}
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
	if _, err := pool.Exec(ctx, `CREATE TABLE things (id int PRIMARY KEY, n int NOT NULL); INSERT INTO things
		VALUES (1, 0), (2, 0)`); err != nil {
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
