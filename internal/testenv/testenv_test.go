package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// crashing makes this test binary start servers, say where, and wait to be
// killed: TestServersEndWithACrashedBinary runs it so.
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
		t.Fatalf("the other binary said %q, want two directories", dirs)
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

func TestDatabasesAreSeparateAndMigrated(t *testing.T) {
	ctx := t.Context()
	first, second := Pool(t), Pool(t)
	if _, err := first.Exec(ctx, "CREATE TABLE mine (id int)"); err != nil {
		t.Fatal(err)
	}
	var seen bool
	if err := second.QueryRow(ctx, "SELECT to_regclass('mine') IS NOT NULL").Scan(&seen); err != nil {
		t.Fatal(err)
	}
	if seen {
		t.Error("a table of one test's database is seen in another's")
	}
	var version int64
	if err := second.QueryRow(ctx, "SELECT max(version_id) FROM intumwa_schema").Scan(&version); err != nil || version == 0 {
		t.Errorf("schema version = %d, %v; want a migrated database", version, err)
	}
}

// TestDatabasesAreReused: the next test gets the database of the one before, without a trace of it. What has another schema,
// settings than at first, and what the planner knows about, is dropped.
func TestDatabasesAreReused(t *testing.T) {
	use := func(statements ...string) (name string) {
		t.Run("user", func(t *testing.T) {
			pool := Pool(t)
			if err := pool.QueryRow(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
				t.Fatal(err)
			}
			var rows, id int64
			if err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM ledger), nextval('ledger_id_seq')`).Scan(&rows, &id); err != nil || rows != 0 || id != 1 {
				t.Errorf("%d rows are there, the first id is %d, %v", rows, id, err)
			}
			left, err := pgx.Connect(t.Context(), pool.Config().ConnString()) // nobody closes it
			if err != nil {
				t.Fatal(err)
			}
			Companies(t, pool, 1)
			for _, statement := range append(statements, `INSERT INTO ledger (company_id, kind, amount, balance_after) VALUES (1, 'adjustment', 1, 1)`) {
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
		`CREATE OR REPLACE FUNCTION purge_mark(ref uuid, segments bigint) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS 'SELECT 1::numeric'`,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 500', current_database()); END $$`,
		`ANALYZE users`,
	} {
		name := use(change)
		if again := use(); again == name {
			t.Errorf("the next test has the same database after %s", change)
		}
	}
}

func TestRedisPrefixIsCleanedUp(t *testing.T) {
	client, other := Redis(t)
	ctx := t.Context()
	if err := client.Set(ctx, other+":kept", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	var key string
	t.Run("user", func(t *testing.T) {
		own, prefix := Redis(t)
		if prefix == other {
			t.Error("two tests share a prefix")
		}
		key = prefix + ":gone"
		if err := own.Set(ctx, key, 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
	})
	if err := client.Get(ctx, key).Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("reading a key of a finished test: %v, want redis.Nil", err)
	}
	if err := client.Get(ctx, other+":kept").Err(); err != nil {
		t.Errorf("another test's key is gone: %v", err)
	}
}

func TestPostgresServerComesBackWithItsData(t *testing.T) {
	server := NewPostgresServer(t)
	write := func(statement string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, server.URL())
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, statement)
		return err
	}
	if err := write("CREATE TABLE kept (id int)"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []struct {
		name string
		do   func()
	}{{"stop", server.Stop}, {"kill", server.Kill}} {
		end.do()
		if err := write("SELECT 1"); err == nil {
			t.Errorf("after %s the server still answers", end.name)
		}
		server.Start()
		if err := write("INSERT INTO kept VALUES (1)"); err != nil {
			t.Errorf("after %s and start: %v", end.name, err)
		}
	}
}

func TestRedisServerComesBackWithItsData(t *testing.T) {
	server := NewRedisServer(t)
	client := dialRedis(t, server.URL())
	ctx := t.Context()
	if err := client.Set(ctx, "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if conn, err := net.Dial("tcp", client.Options().Addr); err == nil {
		_ = conn.Close()
		t.Error("after stop the server still answers")
	}
	server.Start()
	server.Kill()
	server.Start()
	if got, err := client.Get(ctx, "key").Result(); err != nil || got != "value" {
		t.Errorf("key = %q, %v; want it kept", got, err)
	}
}

func TestNothingIsLeftWhenAServerIsRemoved(t *testing.T) {
	p, err := startRedis()
	if err != nil {
		t.Fatal(err)
	}
	process := p.running.Process
	p.remove()
	if err := process.Signal(syscall.Signal(0)); err == nil {
		t.Error("the server still runs")
	}
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("its directory is still there: %v", err)
	}
}
