package postgres_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

func setting(t *testing.T, pool *pgxpool.Pool, name string) string {
	t.Helper()
	var value string
	if err := pool.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func open(t *testing.T, url string, opts postgres.Options) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestOpenSetsUpConnections(t *testing.T) {
	database := testenv.Database(t)
	plain := open(t, database, postgres.Options{MaxConns: 3})
	if got := plain.Config().MaxConns; got != 3 {
		t.Errorf("most connections = %d, want 3", got)
	}
	batch := open(t, database, postgres.Options{BatchUpdates: true})
	for _, c := range []struct{ name, plain, batch string }{
		{"application_name", "intumwa", "intumwa"},
		{"TimeZone", "UTC", "UTC"},
		{"statement_timeout", "10s", "10s"},
		{"lock_timeout", "5s", "5s"},
		{"idle_in_transaction_session_timeout", "4s", "4s"},
		{"jit", "off", "off"},
		{"enable_seqscan", "on", "off"},
		{"enable_hashjoin", "on", "off"},
		{"enable_mergejoin", "on", "off"},
		{"plan_cache_mode", "auto", "force_generic_plan"},
	} {
		if got := setting(t, plain, c.name); got != c.plain {
			t.Errorf("%s = %s, want %s", c.name, got, c.plain)
		}
		if got := setting(t, batch, c.name); got != c.batch {
			t.Errorf("with BatchUpdates %s = %s, want %s", c.name, got, c.batch)
		}
	}
}

func TestParametersInTheURLWin(t *testing.T) {
	parsed, err := url.Parse(testenv.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set("statement_timeout", "1234")
	query.Set("pool_max_conns", "2")
	parsed.RawQuery = query.Encode()
	pool := open(t, parsed.String(), postgres.Options{})
	if got := setting(t, pool, "statement_timeout"); got != "1234ms" {
		t.Errorf("statement_timeout = %s, want the URL's 1234ms", got)
	}
	if got := pool.Config().MaxConns; got != 2 {
		t.Errorf("most connections = %d, want the URL's 2", got)
	}
}

// BatchUpdates makes batches update a table without statistics by its key, without reading all of it.
func TestBatchUpdatesGoByTheKey(t *testing.T) {
	ctx := t.Context()
	pool := open(t, testenv.Database(t), postgres.Options{BatchUpdates: true})
	if _, err := pool.Exec(ctx, `
		CREATE TABLE hot (id bigint PRIMARY KEY, status smallint NOT NULL DEFAULT 0);
		INSERT INTO hot SELECT generate_series(1, 20000)`); err != nil {
		t.Fatal(err)
	}
	rows,
		err := pool.Query(ctx, `EXPLAIN UPDATE hot SET status = 1 FROM unnest($1::bigint[]) AS u(id) WHERE hot.id = u.id`,
		[]int64{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if !strings.Contains(plan.String(), "Index Scan using hot_pkey") || strings.Contains(plan.String(), "Seq Scan") {
		t.Errorf("the plan is\n%s", &plan)
	}
}

func TestOpenNeverShowsThePassword(t *testing.T) {
	const password = "hunter2"
	// A closed port.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	_ = listener.Close()
	for _, bad := range []string{
		"postgres://me:" + password + "@" + closed + "/db",
		"postgres://me:" + password + "/x@127.0.0.1/db",
		"postgres://me:" + password + "%zz@127.0.0.1/db",
		"postgres://me:" + password + "@127.0.0.1:port/db",
		"postgres://me:x@" + password + "@127.0.0.1:1:2/db",
		"postgres://me:" + password + "@127.0.0.1/db?sslmode=sometimes",
		"host=127.0.0.1 port=none password=" + password,
		"password='" + password,
	} {
		for name, try := range map[string]func() error{
			"Open": func() error {
				pool, err := postgres.Open(t.Context(), bad, postgres.Options{})
				if err == nil {
					pool.Close()
				}
				return err
			},
			"Migrate": func() error { _, err := postgres.Migrate(t.Context(), bad); return err },
		} {
			err := try()
			if err == nil {
				t.Errorf("%s accepted %q", name, bad)
			} else if strings.Contains(err.Error(), password) {
				t.Errorf("%s shows the password: %v", name, err)
			}
		}
	}
}

// A server that accepts the connection and never responds must not delay a start.
func TestOpenGivesUpOnASilentServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := postgres.Open(ctx, "postgres://me@"+listener.Addr().String()+"/db?sslmode=disable",
		postgres.Options{}); err == nil {
		t.Error("Open succeeded without an answer")
	}
}

func TestMajorVersion(t *testing.T) {
	for text, want := range map[string]int{
		"15.18 (Debian 15.18-0+deb12u1)": 15, "17beta1": 17, "9.6.24": 9, "": 0, "devel": 0,
	} {
		if got := postgres.MajorVersion(text); got != want {
			t.Errorf("MajorVersion(%q) = %d, want %d", text, got, want)
		}
	}
}
