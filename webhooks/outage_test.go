package webhooks

import (
	"testing"
	"time"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestPostgresCrashes: results of calls that ended while PostgreSQL was down are stored
// once it is back, and everything is delivered.
func TestPostgresCrashes(t *testing.T) {
	t.Parallel()
	const n = 400
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{MaxConns: 8, BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := newSink(t, nil)
	w := New(pool, quickly())
	setEndpoint(t, w, 1, s.URL)
	enqueue(t, w, 1, 1, n)
	stop := run(t, w)
	eventually(t, "some calls", func() bool { return s.count() > n/10 })
	server.Kill()
	server.Start()
	last, since := 0, time.Now()
	eventually(t, "all stored", func() bool {
		var stored int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM webhook_delivered`).Scan(&stored); err != nil ||
			stored != last {
			last, since = stored, time.Now()
		}
		if time.Since(since) > maxRecordPause+10*time.Second { // claims whose COMMIT got no reply are left
			perform(t, w, `UPDATE webhook_undelivered SET claimed_until = now()`)
			since = time.Now()
		}
		return last == n
	})
	stop()
	// Only the calls in progress may be repeated.
	if repeated := s.count() - n; repeated > 2*mostCalls {
		t.Errorf("%d calls repeated", repeated)
	}
}
