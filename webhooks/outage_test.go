package webhooks

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

func ownServer(t *testing.T) (*testenv.Server, *pgxpool.Pool) {
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(context.Background(), server.URL(), postgres.Options{MaxConns: 8, BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return server, pool
}

// TestPostgresCrashes: results of calls that ended while PostgreSQL was away are
// stored when it is back, and everything is delivered.
func TestPostgresCrashes(t *testing.T) {
	t.Parallel()
	const n = 400
	server, pool := ownServer(t)
	s := newSink(t, nil)
	opts := quickly()
	opts.Timeout = 10 * time.Second // after 20 s more, a claim whose COMMIT got no answer ends
	w := New(pool, opts)
	setEndpoint(t, w, 1, s.URL)
	enqueue(t, w, 1, 1, n)
	stop := run(t, w)
	eventually(t, "some calls", func() bool { return s.count() > n/10 })
	server.Kill()
	server.Start()
	eventually(t, "all stored", func() bool {
		var stored int
		err := pool.QueryRow(context.Background(), `SELECT count(*) FROM webhook_delivered`).Scan(&stored)
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

// TestSlowLook: a look that took long, since PostgreSQL did not respond for a while, delays
// later deliveries by a few seconds and no more.
func TestSlowLook(t *testing.T) {
	t.Parallel()
	server, pool := ownServer(t)
	s := newSink(t, nil)
	w := New(pool, quickly())
	setEndpoint(t, w, 1, s.URL)
	enqueue(t, w, 1, 1, 1)
	run(t, w)
	eventually(t, "a call", func() bool { return s.count() == 1 })
	server.Freeze()
	<-time.After(8 * time.Second) // a look is under way all the time
	server.Thaw()
	enqueue(t, w, 1, 2, 1)
	eventually(t, "a call after the outage", func() bool { return s.count() == 2 })
}
