package webhooks

import (
	"context"
	"testing"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestPostgresCrashes: results of calls that ended while Postgres was away are
// stored when it is back, and everything is delivered.
func TestPostgresCrashes(t *testing.T) {
	const n = 400
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(context.Background(), server.URL(), postgres.Options{MaxConns: 8, BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := newSink(t, nil)
	opts := quickly()
	w := New(pool, opts)
	setEndpoint(t, w, 1, s.URL)
	enqueue(t, w, 1, 1, n)
	stop := run(t, w)
	eventually(t, "some calls", func() bool { return s.count() > n/10 })
	server.Kill()
	server.Start()
	eventually(t, "all stored", func() bool {
		var stored int
		err := pool.QueryRow(context.Background(), `SELECT count(DISTINCT seq) FROM webhook_attempts`).Scan(&stored)
		return err == nil && stored == n
	})
	stop()
	if done := countState(t, w, delivered); done != n {
		t.Errorf("%d of %d are delivered", done, n)
	}
	// What was in hand may be repeated, nothing else.
	if repeated := s.count() - n; repeated > 2*mostCalls {
		t.Errorf("%d calls repeated", repeated)
	}
}
