package testenv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
)

// templateLock is the advisory lock with which test binaries on one server agree which of
// them makes the template.
const templateLock = 0x1A70

// Database returns the URL of an empty database with the current schema for this test
// alone. Afterwards it is emptied for another test, or dropped.
func Database(t testing.TB) string {
	t.Helper()
	return borrow(t).url
}

// Pool is a pool of PoolWith for most tests. On a busy machine the filling of a table may take longer than a statement
// of the product may.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return PoolWith(t, postgres.Options{StatementTimeout: time.Minute})
}

// PoolWith returns a pool of connections to a new Database. A later test may get it again, without the settings, locks
// and plans of its sessions. A test may close it.
func PoolWith(t testing.TB, options postgres.Options) *pgxpool.Pool {
	t.Helper()
	return borrow(t, options).pools[options]
}

// Pools is PoolWith for two pools of one database.
func Pools(t testing.TB, first, second postgres.Options) (one, other *pgxpool.Pool) {
	t.Helper()
	d := borrow(t, first, second)
	return d.pools[first], d.pools[second]
}

func borrow(t testing.TB, pools ...postgres.Options) *database {
	t.Helper()
	server := shared.postgres.get(t)
	d, err := takeDatabase(server, t.Name(), pools)
	if err != nil {
		t.Fatalf("taking a database for this test: %v", err)
	}
	t.Cleanup(func() {
		if err := d.giveBack(server); err != nil {
			t.Logf("emptying the database of this test: %v", err)
		}
	})
	return d
}

// Blocked reports whether a session in the database waits for a lock.
func Blocked(t testing.TB, db postgres.DB) (blocked bool) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
			AND wait_event_type = 'Lock')`).Scan(&blocked); err != nil {
		t.Fatalf("reading which sessions wait: %v", err)
	}
	return blocked
}

// Companies creates the approved companies 1 to n, each with the approved sender DEMO, in an empty database:
// dispatchers need them for messages that tests insert directly.
func Companies(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `WITH u AS (
			INSERT INTO users (email, name, password_hash) SELECT n || '@example.com', 'U', 'x'
				FROM generate_series(1, $1::int) n RETURNING id
		), c AS (
			INSERT INTO companies (owner_id, name, approved) SELECT id, 'C', true FROM u RETURNING id
		)
		INSERT INTO senders (company_id, name, approved) SELECT id, 'DEMO', true FROM c`, n); err != nil {
		t.Fatalf("registering %d companies: %v", n, err)
	}
}

// createDatabase copies the migrated template. It first makes the template if the server
// has none for the embedded migrations.
func createDatabase(server, name string) error {
	return connected(server, func(ctx context.Context, conn *pgx.Conn) error {
		template := "intumwa_template_" + postgres.Checksum()
		if err := ensureTemplate(ctx, conn, server, template); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template)); err != nil {
			return fmt.Errorf("copying the template: %w", err)
		}
		return nil
	})
}

func ensureTemplate(ctx context.Context, conn *pgx.Conn, server, template string) error {
	if ok, err := databaseExists(ctx, conn, template); ok || err != nil {
		return err
	}
	// The lock ends with the connection.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return fmt.Errorf("waiting for the template: %w", err)
	}
	defer func() { _, _ = conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", templateLock) }()
	if ok, err := databaseExists(ctx, conn, template); ok || err != nil {
		return err
	}
	// It gets its final name when it is complete, so no test copies a part of it.
	draft := databaseName("template")
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+quote(draft)); err != nil {
		return fmt.Errorf("making the template: %w", err)
	}
	if _, err := postgres.Migrate(ctx, inDatabase(server, draft)); err != nil {
		_, _ = conn.Exec(ctx, "DROP DATABASE "+quote(draft)+" WITH (FORCE)")
		return fmt.Errorf("making the template: %w", err)
	}
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+quote(draft)+" RENAME TO "+quote(template)); err != nil {
		return fmt.Errorf("naming the template: %w", err)
	}
	return nil
}

func databaseExists(ctx context.Context, conn *pgx.Conn, name string) (bool, error) {
	var exists bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("looking for database %s: %w", name, err)
	}
	return exists, nil
}

// connected runs do on a new connection.
func connected(url string, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := within()
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close(ctx)
	return do(ctx, conn)
}

func execute(server, statement string) error {
	return connected(server, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("running a statement: %w", err)
		}
		return nil
	})
}

// databaseName contains the test's name and is never reused.
func databaseName(test string) string {
	const most = 40 // of the 63 bytes of a name
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(test))
	return "t_" + readable[:min(most, len(readable))] + "_" + strconv.FormatUint(rand.Uint64(), 36)
}

// inDatabase replaces the database in the server's URL.
func inDatabase(server, name string) string {
	parsed, err := url.Parse(server)
	if err != nil {
		panic("the test server's URL cannot be read") // its text may contain a password
	}
	parsed.Path = "/" + name
	return parsed.String()
}

// Patient is a database's URL for a test that PostgreSQL must not cut off between two statements on a busy machine. A
// wait for a lock lasts as long as a statement may.
func Patient(database string) string {
	parsed, err := url.Parse(database)
	if err != nil {
		panic("the test database's URL cannot be read") // its text may contain a password
	}
	query := parsed.Query()
	query.Set("idle_in_transaction_session_timeout", "60000")
	query.Set("lock_timeout", "60000")
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
