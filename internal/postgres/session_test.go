package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// recovery is how soon a server that is writable again must be used.
const recovery = 15 * time.Second

// TestReadOnlySessions: a server is read-only for a while. Soon after it is writable again a program that writes once
// in 400 ms succeeds, however its sessions came to be read-only, and health probes pass.
func TestReadOnlySessions(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	operator := open(t, server.URL(), postgres.Options{MaxConns: 1})
	exec := func(statement string) func() {
		return func() {
			t.Helper()
			if _, err := operator.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	exec(`CREATE TABLE things (id int); CREATE ROLE sends LOGIN SUPERUSER`)()
	// fill opens all sessions of a pool.
	fill := func(pool *pgxpool.Pool, statement string) {
		t.Helper()
		var held []*pgxpool.Conn
		for range pool.Config().MaxConns {
			c, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Exec(t.Context(), statement)
			held = append(held, c)
		}
		for _, c := range held {
			c.Release()
		}
	}
	for _, c := range []struct {
		what       string
		begin, end func()
		session    string // done in each session after begin
	}{
		{"a setting of the server, reloaded", exec(`ALTER SYSTEM SET default_transaction_read_only = on`),
			exec(`ALTER SYSTEM RESET default_transaction_read_only`), `SELECT pg_reload_conf()`},
		{"a setting of the database: for the life of a session",
			exec(`ALTER DATABASE ` + operator.Config().ConnConfig.Database + ` SET default_transaction_read_only = on`),
			exec(`ALTER DATABASE ` + operator.Config().ConnConfig.Database + ` RESET default_transaction_read_only`),
			`SELECT 1`},
		{"a setting of the role", exec(`ALTER ROLE ` + operator.Config().ConnConfig.User +
			` SET default_transaction_read_only = on`),
			exec(`ALTER ROLE ` + operator.Config().ConnConfig.User + ` RESET default_transaction_read_only`), `SELECT 1`},
		{"a pooler that leaves its setting in the sessions", func() {}, func() {}, `SET default_transaction_read_only = on`},
	} {
		primary := postgres.NewPrimary(nil)
		before := opened(t, server.URL(), primary) // its sessions are older than the setting
		write := func(pool *pgxpool.Pool) error {
			_, err := pool.Exec(t.Context(), `INSERT INTO things VALUES (1)`)
			return err
		}
		fill(before, `SELECT 1`)
		c.begin()
		during, probing := opened(t, server.URL(), primary), opened(t, server.URL(), primary)
		for _, pool := range []*pgxpool.Pool{during, probing} {
			fill(pool, c.session)
		}
		if err := write(during); postgres.SQLState(err) != "25006" {
			t.Fatalf("%s: %v", c.what, err)
		}
		if _, err := before.Exec(t.Context(), `SELECT count(*) FROM things`); err != nil {
			t.Errorf("%s: look-ups end: %v", c.what, err)
		}
		time.Sleep(20 * time.Millisecond) // the pools are renewed; their new sessions are read-only
		for _, pool := range []*pgxpool.Pool{during, probing} {
			fill(pool, c.session)
		}
		operator.Reset()
		if c.what != "a pooler that leaves its setting in the sessions" {
			if _, err := operator.Exec(t.Context(), `SET default_transaction_read_only = off`); err != nil {
				t.Fatal(err)
			}
		}
		c.end()
		if _, err := operator.Exec(t.Context(), `SELECT pg_reload_conf()`); err != nil {
			t.Fatal(err)
		}
		well := time.Now()
		var both sync.WaitGroup
		await := func(what string, try func() error) {
			both.Go(func() {
				err := try()
				for ; err != nil && time.Since(well) < recovery; err = try() {
					time.Sleep(400 * time.Millisecond) // the rate of its sends
				}
				if err != nil {
					t.Errorf("%s: %s: after %v: %v", c.what, what, recovery, err)
				}
			})
		}
		await("sends", func() error { return write(during) })
		await("older sessions", func() error { return write(before) })
		await("the probe", func() error { return postgres.Probe(t.Context(), probing) })
		both.Wait()
	}
}

// TestSpentSessions: a session is closed after an error that says that its server is read-only or goes, and kept after
// others.
func TestSpentSessions(t *testing.T) {
	t.Parallel()
	pool := open(t, testenv.Database(t), postgres.Options{MaxConns: 1})
	session := func() (pid int) {
		if err := pool.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	for code, closed := range map[string]bool{"25006": true, "57P01": true, "57P02": true, "57P03": true, "08000": true,
		"08006": true, "08P01": true,
		"57014": false, "53100": false, "54000": false, "22003": false, "40001": false, "XX000": false} {
		before := session()
		_, err := pool.Exec(t.Context(), `DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '`+code+`'; END $$`)
		if postgres.SQLState(err) != code {
			t.Errorf("%s: %v", code, err)
		}
		after := session()
		for end := time.Now().Add(recovery); closed && after == before && time.Now().Before(end); after = session() {
			time.Sleep(time.Millisecond) // the pool is being renewed
		}
		if (after != before) != closed {
			t.Errorf("%s: session %d, then %d", code, before, after)
		}
	}
}
