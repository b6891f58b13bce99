package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// portOf returns the port of a pool's server.
func portOf(t *testing.T, pool *pgxpool.Pool) (port string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT inet_server_port()::text`).Scan(&port); err != nil {
		t.Fatal(err)
	}
	return port
}

func leadsTo(server *testenv.Server, port string) bool {
	return strings.HasSuffix(server.URL(), "port="+port)
}

func opened(t *testing.T, url string, primary *postgres.Primary) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, postgres.Options{Primary: primary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// TestOldPrimary: after the promotion of the standby, the old primary still runs and accepts writes. Statements that
// wait for its response fail at once, and no process sends it more, not even a new one that lists it first.
func TestOldPrimary(t *testing.T) {
	t.Parallel()
	pair := testenv.NewPostgresPair(t)
	url := pair.URL("none")
	old := pair.Primary
	known := postgres.NewPrimary(nil)
	pool := opened(t, url, known)
	if port := portOf(t, pool); !leadsTo(old, port) {
		t.Fatalf("it is on port %s", port)
	}
	if why, err := postgres.Unsafe(t.Context(), pool); err != nil || why != "" {
		t.Errorf("each commit is on the standby: %q, %v", why, err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := pool.Exec(context.Background(), `SELECT pg_sleep(60)`)
		result <- err
	}()
	other := opened(t, old.URL(), nil)
	for end, running := time.Now().Add(30*time.Second), 0; running == 0; {
		if err := other.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE state = 'active'
			AND query = 'SELECT pg_sleep(60)'`).Scan(&running); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("the statement does not reach the old primary")
		}
	}
	other.Close()
	pair.Promote()
	known.Look(t.Context(), url)
	select {
	case err := <-result:
		if err == nil || postgres.SQLState(err) != "" {
			t.Errorf("a statement on the old primary: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the old primary is still waited for")
	}
	if port := portOf(t, pool); !leadsTo(pair.Primary, port) {
		t.Errorf("then it is on port %s", port)
	}
	if why, err := postgres.Unsafe(t.Context(), pool); err != nil || !strings.Contains(why, "synchronous_standby_names") {
		t.Errorf("the new primary has no standby: %q, %v", why, err)
	}
	if _, err := postgres.Open(t.Context(), old.URL(), postgres.Options{Primary: known}); err == nil ||
		!strings.Contains(err.Error(), "not the primary any more: it is on timeline 1, and another one is on timeline 2") {
		t.Errorf("a name that leads to the old primary still: %v", err)
	}
	fresh := postgres.NewPrimary(nil)
	fresh.Look(t.Context(), url)
	if port := portOf(t, opened(t, url, fresh)); !leadsTo(pair.Primary, port) {
		t.Errorf("a process that starts now is on port %s", port)
	}
	// It must follow the new one, as a new standby, before it can be used again.
	pair.Follow()
	if port := portOf(t, opened(t, url, nil)); !leadsTo(pair.Primary, port) {
		t.Errorf("with the standby first in the URL it is on port %s", port)
	}
}

// TestSilentHost: a silent host, first in the URL, does not keep pools and single connections from the other host.
func TestSilentHost(t *testing.T) {
	t.Parallel()
	pool := testenv.BehindSilentHost(t, testenv.Pool(t))
	if _, err := pool.Exec(t.Context(), `SELECT 1`); err != nil {
		t.Error(err)
	}
	conn, err := postgres.Connect(t.Context(), pool, 4*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
}
