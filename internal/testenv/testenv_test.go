package testenv

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
)

// crashing makes this test binary start servers, print their addresses, and wait to be
// killed, for TestServersEndWithACrashedBinary.
const crashing = "INTUMWA_TESTENV_CRASHING"

func TestMain(m *testing.M) {
	if os.Getenv(crashing) == "" {
		Main(m)
	}
	for _, start := range []func() (*process, error){startPostgres, startRedis} {
		p, err := start()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.dir)
	}
	select {}
}

func TestServersEndWithACrashedBinary(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashing+"=yes")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dirs []string
	lines := bufio.NewScanner(out)
	for len(dirs) < 2 && lines.Scan() {
		dirs = append(dirs, lines.Text())
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(dirs) != 2 {
		t.Fatalf("the other binary printed %q, want two directories", dirs)
	}
	deadline := time.Now().Add(20 * time.Second)
	for _, dir := range dirs {
		for {
			if _, err := os.Stat(dir); os.IsNotExist(err) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is still there", dir)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// TestSessionsAreReused: the next test gets the previous test's sessions as new ones, unless something still uses them.
func TestSessionsAreReused(t *testing.T) {
	use := func(statements string) (pool *pgxpool.Pool, session int) {
		t.Run("user", func(t *testing.T) {
			pool = PoolWith(t, postgres.Options{MaxConns: 1})
			var memory string
			var kept int
			if err := pool.QueryRow(t.Context(), `SELECT pg_backend_pid(), current_setting('work_mem'),
				(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
				+ (SELECT count(*) FROM pg_class WHERE relname = 'left_over') + (SELECT count(*) FROM pg_listening_channels())`).Scan(
				&session, &memory, &kept); err != nil || memory != "4MB" || kept > 0 {
				t.Errorf("work_mem is %s, %d locks, tables and channels are there, %v", memory, kept, err)
			}
			if _, err := pool.Exec(t.Context(), statements, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
		})
		return pool, session
	}
	_, first := use(`SET work_mem = '1MB'; SELECT pg_advisory_lock(7); CREATE TEMP TABLE left_over (); LISTEN x`)
	pool, again := use(``)
	if again != first {
		t.Errorf("the second test has session %d, the first had %d", again, first)
	}
	if err := pool.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, other := use(``); other == again {
		t.Error("a pool that is used after its test is another test's")
	}
}

// TestDatabasesAreReused: the next test gets the previous test's database, emptied. A database with another schema,
// other settings or planner statistics is dropped.
func TestDatabasesAreReused(t *testing.T) {
	use := func(statements ...string) (name string) {
		t.Run("user", func(t *testing.T) {
			pool := Pool(t)
			if err := pool.QueryRow(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
				t.Fatal(err)
			}
			var rows, id int64
			if err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM ledger),
				nextval('ledger_id_seq')`).Scan(&rows, &id); err != nil || rows != 0 || id != 1 {
				t.Errorf("%d rows are there, the first id is %d, %v", rows, id, err)
			}
			left, err := pgx.Connect(t.Context(), pool.Config().ConnString()) // it stays open
			if err != nil {
				t.Fatal(err)
			}
			Companies(t, pool, 1)
			for _, statement := range append(statements, `INSERT INTO ledger (company_id, kind, amount, balance_after)
				VALUES (1, 'adjustment', 1, 1)`) {
				if _, err := left.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
		})
		return name
	}
	name := use()
	if again := use(); again != name {
		t.Errorf("the second test has %s, the first had %s", again, name)
	}
	for _, change := range []string{
		`ALTER TABLE ledger DISABLE TRIGGER USER`,
		`CREATE OR REPLACE FUNCTION purge_mark(ref uuid, segments bigint) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS
			'SELECT 1::numeric'`,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 500', current_database()); END $$`,
		`ANALYZE users`,
	} {
		name := use(change)
		if again := use(); again == name {
			t.Errorf("the next test has the same database after %s", change)
		}
	}
}
