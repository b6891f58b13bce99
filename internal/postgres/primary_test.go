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

// portOf is that of the server which a pool's statements go to.
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

// TestOldPrimary: a primary that is still there, and takes writes, when its standby has
// been promoted: what it was asked and has not answered fails at once, and nobody asks
// it anything more; also not a process that starts now, and lists it first.
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
	asked := make(chan error, 1)
	go func() {
		_, err := pool.Exec(context.Background(), `SELECT pg_sleep(60)`)
		asked <- err
	}()
	other := opened(t, old.URL(), nil)
	for end, asks := time.Now().Add(30*time.Second), 0; asks == 0; {
		if err := other.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(60)'`).Scan(&asks); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("the old primary is asked nothing")
		}
	}
	other.Close()
	pair.Promote()
	known.Look(t.Context(), url)
	select {
	case err := <-asked:
		if err == nil || postgres.SQLState(err) != "" {
			t.Errorf("what the old primary was asked: %v", err)
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
	if _, err := postgres.Open(t.Context(), old.URL(), postgres.Options{Primary: known}); err == nil || !strings.Contains(err.Error(), "not the primary any more: it is on timeline 1, and another one is on timeline 2") {
		t.Errorf("a name that leads to the old primary still: %v", err)
	}
	fresh := postgres.NewPrimary(nil)
	fresh.Look(t.Context(), url)
	if port := portOf(t, opened(t, url, fresh)); !leadsTo(pair.Primary, port) {
		t.Errorf("a process that starts now is on port %s", port)
	}
	// It must follow the new one, as anew, to be of use again.
	pair.Follow()
	if port := portOf(t, opened(t, url, nil)); !leadsTo(pair.Primary, port) {
		t.Errorf("with the standby first in the URL it is on port %s", port)
	}
}

// TestSilentHost: a silent host, first in the URL, keeps no process from the
// other: neither a pool, nor who has a connection of their own.
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
