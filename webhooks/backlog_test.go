package webhooks

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestLargeBacklog: a failing endpoint with a large due backlog delays no other, even while an old
// snapshot keeps all deleted rows.
func TestLargeBacklog(t *testing.T) {
	const backlog, n = 30_000, 200
	failing, s := newSink(t, status(http.StatusServiceUnavailable)), newSink(t, nil)
	opts := quickly()
	opts.RetryDelays = []time.Duration{time.Hour}
	w := New(batchPool(t), opts)
	setEndpoint(t, w, 1, failing.URL)
	setEndpoint(t, w, 2, s.URL)
	perform(t, w, `INSERT INTO webhook_undelivered (company_id, id, at, due, phone_number)
		SELECT 1, 8 * n, now(), now() - interval '1 hour', '' FROM generate_series(1, $1::int) n`, backlog)
	old, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Rollback(context.Background()) }()
	if _, err := old.Exec(t.Context(), `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Exec(t.Context(), `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Exec(t.Context(), `SELECT count(*) FROM webhook_endpoints`); err != nil {
		t.Fatal(err)
	}
	run(t, w)
	eventually(t, "the backlog is worked at", func() bool { return failing.count() > 20 })
	for i := range n / 20 {
		enqueue(t, w, 2, int64(1_000_000+20*i), 20)
		eventually(t, "a batch called", func() bool { return s.count() >= 20*(i+1) })
	}
}

// TestManyProcesses: several processes share one endpoint's deliveries, each delivered once.
func TestManyProcesses(t *testing.T) {
	const n, processes = 2000, 3
	s := newSink(t, nil)
	pool := batchPool(t)
	var all []*Webhooks
	var stops []func()
	opts := quickly()
	opts.Drain = patience // a call that is cut off is made again
	for range processes {
		w := New(pool, opts)
		all = append(all, w)
	}
	for company := range int64(5) {
		setEndpoint(t, all[0], company+1, s.URL)
	}
	for _, w := range all {
		stops = append(stops, run(t, w))
	}
	var settling sync.WaitGroup
	for i, w := range all {
		settling.Go(func() {
			for company := range int64(5) {
				enqueue(t, w, company+1, (company*processes+int64(i))*n+1, n/processes/5)
			}
		})
	}
	settling.Wait()
	stops[0]() // the others make the calls that it does not
	eventually(t, "all delivered", func() bool { return countState(t, all[1], delivered) == n/processes/5*processes*5 })
	if made := s.count(); made != n/processes/5*processes*5 {
		t.Errorf("%d calls of %d deliveries", made, n/processes/5*processes*5)
	}
}
