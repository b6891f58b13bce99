package webhooks

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestLateCommit: a delivery whose transaction ends after younger ones is delivered, however late.
func TestLateCommit(t *testing.T) {
	s := newSink(t, nil)
	w := New(batchPool(t), quickly())
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 1)
	inState(t, w, 1, StateDelivered)
	late, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Rollback(context.Background()) }()
	if _, err := late.Exec(t.Context(), `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	if err := w.Enqueue(t.Context(), late, []Event{{CompanyID: 1, MessageID: 2, Name: Sent, PhoneNumber: "+25761234567", At: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Exec(t.Context(), `UPDATE webhook_undelivered SET due = due - interval '1 hour' WHERE id = $1`, 2*idSpan); err != nil { // it began an hour ago
		t.Fatal(err)
	}
	enqueue(t, w, 1, 3, 10)
	inState(t, w, 12, StateDelivered)
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	inState(t, w, 2, StateDelivered)
	if n := s.count(); n != 12 {
		t.Errorf("%d calls, want 12", n)
	}
}

// TestNotBeforeItIsSafe: an event is not posted while no standby has it, even if its row is visible
// because the client gave up waiting for the COMMIT. This holds for the process that recorded it to
// call it, and for the next claim. It is posted once commits are safe again.
func TestNotBeforeItIsSafe(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{MaxConns: 8, BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := newSink(t, nil)
	w := New(pool, quickly())
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 20)
	eventually(t, "all delivered", func() bool { return countState(t, w, delivered) == 20 })
	makeQuick(w)
	standby := func(name string) {
		t.Helper()
		perform(t, w, `ALTER SYSTEM SET synchronous_standby_names = '`+name+`'`)
		perform(t, w, `SELECT pg_reload_conf()`)
		eventually(t, "the server heard of it", func() (heard bool) {
			pool.Reset() // an idle session has the settings of its last statement
			err := pool.QueryRow(t.Context(), `SELECT current_setting('synchronous_standby_names') = $1`, name).Scan(&heard)
			return err == nil && heard
		})
	}
	standby("gone")
	waits := func() (waits bool) {
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')`).Scan(&waits)
		return err == nil && waits
	}
	// An abandoned commit is visible anyway.
	givenUp := func(do func(ctx context.Context, tx pgx.Tx) error) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- postgres.InTx(ctx, pool, func(tx pgx.Tx) error { return do(ctx, tx) }) }()
		eventually(t, "a commit waits for its standby", waits)
		cancel()
		if err := <-done; err == nil {
			t.Fatal("a commit did not wait for its standby")
		}
		eventually(t, "it is given up", func() bool { return !waits() })
	}
	givenUp(func(ctx context.Context, tx pgx.Tx) error {
		if err := w.Enqueue(ctx, tx, []Event{{CompanyID: 1, MessageID: 100, Name: Sent, PhoneNumber: "+25761234567", At: time.Now()}}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SELECT 1`) // runs the queued batch, so the jobs arrive before the COMMIT
		return err
	})
	givenUp(func(ctx context.Context, tx pgx.Tx) error {
		ended, err := tx.Exec(ctx, `UPDATE webhook_first_calls SET ends = now()`)
		if ended.RowsAffected() != 1 {
			t.Errorf("%d first calls were recorded, %v", ended.RowsAffected(), err)
		}
		return err
	})
	eventually(t, "the next claim waits", waits)
	if n := s.count(); n != 20 {
		t.Fatalf("%d calls: the event was posted although no standby has it", n)
	}
	standby("")
	inState(t, w, 100, StateDelivered)
}

// makeQuick makes Run treat companies' endpoints as quick, even on a busy machine; none: company 1's.
func makeQuick(w *Webhooks, companies ...int64) {
	d := w.running.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, company := range append(companies, 1) {
		e := newWorker(company)
		e.known, e.limit = true, mostCalls
		d.workers[company] = e
	}
}

// TestCommitAfterTheEndOfRun: deliveries claimed for a deliverer that has ended are given back.
func TestCommitAfterTheEndOfRun(t *testing.T) {
	w := New(batchPool(t), quickly())
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	stop := run(t, w)
	eventually(t, "it runs", func() bool { return w.running.Load() != nil })
	makeQuick(w)
	tx, err := postgres.Begin(t.Context(), w.pool.(*pgxpool.Pool))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Enqueue(t.Context(), tx, []Event{{CompanyID: 1, MessageID: 1, Name: Sent, PhoneNumber: "+25761234567", At: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	var calls int
	const query = `SELECT count(*) FROM webhook_first_calls`
	if err := tx.QueryRow(t.Context(), query).Scan(&calls); err != nil || calls != 1 {
		t.Fatalf("%d first calls, %v", calls, err)
	}
	stop()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.pool.QueryRow(t.Context(), query).Scan(&calls); err != nil || calls != 0 {
		t.Errorf("%d first calls, %v", calls, err)
	}
	if d := only(t, w, 1); d.State != StatePending || d.NextAt == nil || d.NextAt.After(postgres.Now()) || len(d.Attempts) != 0 {
		t.Errorf("%+v", d)
	}
}

// TestChangeWhileTheyWait: deliveries handed over but not yet called when the endpoint changes go to
// the new address.
func TestChangeWhileTheyWait(t *testing.T) {
	answer := make(chan struct{})
	before, after := newSink(t, func(http.ResponseWriter, *http.Request) { <-answer }), newSink(t, nil)
	pool := batchPool(t)
	w := New(pool, quickly())
	setEndpoint(t, w, 1, before.URL)
	run(t, w)
	eventually(t, "it runs", func() bool { return w.running.Load() != nil })
	makeQuick(w)
	enqueue(t, w, 1, 1, mostCalls+10)
	eventually(t, "all callers wait", func() bool { return before.count() == mostCalls })
	setEndpoint(t, New(pool, quickly()), 1, after.URL) // by another process
	w.EndpointChanged("1")
	close(answer)
	eventually(t, "all stored", func() bool { return countState(t, w, delivered) == mostCalls+10 })
	if b, a := before.count(), after.count(); b != mostCalls || a != 10 {
		t.Errorf("%d calls of the old address, %d of the new one", b, a)
	}
}

// TestDeadProcess: a dead process's claims end by their time, and another process makes the calls.
func TestDeadProcess(t *testing.T) {
	s := newSink(t, nil)
	opts := quickly()
	w := New(batchPool(t), opts)
	setEndpoint(t, w, 1, s.URL)
	enqueue(t, w, 1, 1, 20)
	taken, err := w.claim(t.Context(), []wish{{worker: newWorker(1), most: 10}}) // and dies
	if err != nil || len(taken[1].jobs) != 10 {
		t.Fatalf("%+v, %v", taken, err)
	}
	run(t, w)
	eventually(t, "what it had not claimed", func() bool { return countState(t, w, delivered) == 10 })
	if n := s.count(); n != 10 {
		t.Errorf("%d calls of 10 deliveries that nobody had claimed", n)
	}
	perform(t, w, `UPDATE webhook_undelivered SET claimed_until = now()`)
	eventually(t, "the rest", func() bool { return countState(t, w, delivered) == 20 })
}

// TestSleeperWritesNothing: a handed-over event is pending during its call. When its claim ends,
// another process calls, and the first call's result is not recorded.
func TestSleeperWritesNothing(t *testing.T) {
	release := make(chan struct{})
	var calls atomic.Int64
	s := newSink(t, func(rw http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			<-release
			rw.WriteHeader(http.StatusGone)
		}
	})
	answer := sync.OnceFunc(func() { close(release) })
	t.Cleanup(answer)
	pool := batchPool(t)
	w := New(pool, quickly())
	setEndpoint(t, w, 1, s.URL)
	stop := run(t, w)
	eventually(t, "it runs", func() bool { return w.running.Load() != nil })
	makeQuick(w)
	enqueue(t, w, 1, 1, 1)
	eventually(t, "a call in flight", func() bool { return calls.Load() == 1 })
	if list, _, err := w.Deliveries(t.Context(), 1, Filter{State: StatePending}, 0, 10); err != nil || len(list) != 1 || list[0].NextAt == nil {
		t.Errorf("%+v, %v", list, err)
	}
	perform(t, w, `UPDATE webhook_first_calls SET ends = now()`)
	run(t, New(pool, quickly()))
	inState(t, w, 1, StateDelivered)
	answer()
	stop() // writes the result, or not
	if d := only(t, w, 1); d.State != StateDelivered || len(d.Attempts) != 1 || calls.Load() != 2 {
		t.Errorf("%d calls, %+v", calls.Load(), d)
	}
}

// TestBeginsInTime: a delivery whose claim came late is claimed again and not called, because the call
// could outlast the claim.
func TestBeginsInTime(t *testing.T) {
	s := newSink(t, nil)
	d := newDeliverer(t.Context(), New(batchPool(t), quickly()))
	setEndpoint(t, d.Webhooks, 1, s.URL)
	enqueue(t, d.Webhooks, 1, 1, 1)
	taken, err := d.claim(t.Context(), []wish{{worker: newWorker(1), most: 1}})
	if err != nil || len(taken[1].jobs) != 1 {
		t.Fatal(taken, err)
	}
	late := taken[1].jobs[0]
	late.beginBy = time.Now().Add(-time.Second)
	d.attempt(newWorker(1), late)
	if d := only(t, d.Webhooks, 1); s.count() != 0 || d.State != StatePending || len(d.Attempts) != 0 {
		t.Errorf("%d calls, %+v", s.count(), d)
	}
	perform(t, d.Webhooks, `UPDATE webhook_undelivered SET claimed_until = now()`)
	run(t, d.Webhooks)
	inState(t, d.Webhooks, 1, StateDelivered)
}

// TestStoredOnce: a batch that was stored without a reply is not stored twice.
func TestStoredOnce(t *testing.T) {
	w := newDeliverer(t.Context(), New(batchPool(t), quickly()))
	setEndpoint(t, w.Webhooks, 1, "http://127.0.0.1:1/")
	enqueue(t, w.Webhooks, 1, 1, 2)
	taken, err := w.claim(t.Context(), []wish{{worker: newWorker(1), most: 2}})
	if err != nil || len(taken[1].jobs) != 2 {
		t.Fatalf("%+v, %v", taken, err)
	}
	var results []result
	for _, j := range taken[1].jobs {
		results = append(results, result{job: j, state: delivered, ended: time.Now(), attempt: Attempt{At: time.Now().Truncate(time.Millisecond), Result: result2xx, Status: 204}})
	}
	results[1].state, results[1].attempt.Result, results[1].delay = pending, result5xx, time.Hour
	for range 3 {
		if err := w.store(t.Context(), results); err != nil {
			t.Fatal(err)
		}
	}
	if d := only(t, w.Webhooks, 1); d.State != StateDelivered || len(d.Attempts) != 1 {
		t.Errorf("%+v", d)
	}
	if d := only(t, w.Webhooks, 2); d.State != StatePending || len(d.Attempts) != 1 || time.Until(*d.NextAt) < 59*time.Minute {
		t.Errorf("%+v", d)
	}
}

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
	for range processes {
		w := New(pool, quickly())
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

// TestPurge: deliveries older than the retention are deleted with everything that belongs to them, and
// cannot be looked up or sent again.
func TestPurge(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true, Retention: 24 * time.Hour})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	giveUp(t, w, 1, 1, purgeBatch+10)
	perform(t, w, `INSERT INTO webhook_delivered (company_id, id, at, phone_number) SELECT company_id, id + 1, at, phone_number FROM webhook_undelivered`)
	perform(t, w, `UPDATE webhook_deliveries SET at = now() - interval '25 hours' WHERE id / 8 <= $1`, purgeBatch+5)
	gone, most := int64(0), int64(0)
	for block, looks := int64(0), 0; ; looks++ {
		n, next, err := w.purge(t.Context(), block, 10)
		if err != nil {
			t.Fatal(err)
		}
		if looks == 3 { // the table doubles meanwhile
			perform(t, w, `INSERT INTO webhook_delivered (company_id, id, at, phone_number) SELECT 2, n, now(), '+25761234567' FROM generate_series(1, 2100) n`)
		}
		if gone, most, block = gone+n, max(most, n), next; n == 0 && next == 0 {
			break
		}
	}
	if gone != 2*(purgeBatch+5) || most > 2*purgeBatch {
		t.Errorf("%d deleted, %d at once", gone, most)
	}
	if err := errOf(w.Delivery(t.Context(), 1, idSpan)); err == nil {
		t.Error("what has gone is still there")
	}
	if err := errOf(w.Resend(t.Context(), 1, idSpan)); err == nil {
		t.Error("what has gone was sent again")
	}
	if page, _, err := w.Deliveries(t.Context(), 1, Filter{State: StateFailed}, 0, 100); err != nil || len(page) != 5 {
		t.Errorf("%d left, %v", len(page), err)
	}
}

// TestPurgeReadsLittle: however many undelivered deliveries are kept, a purge reads none of them only
// to find that it is not old. Deliveries that wait for an inactive endpoint become old too.
func TestPurgeReadsLittle(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true, Retention: 24 * time.Hour})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	perform(t, w, `INSERT INTO webhook_undelivered (company_id, id, at, due, given_up_at, phone_number)
		SELECT 1, n * 8, now(), CASE WHEN n % 2 = 0 THEN 'infinity' ELSE now() END, now(), '+25761234567' FROM generate_series(1, 50000) n`)
	perform(t, w, `INSERT INTO webhook_delivered (company_id, id, at, phone_number) SELECT 1, 1 + n * 8, now(), '+25761234567' FROM generate_series(1, 50000) n`)
	perform(t, w, `VACUUM ANALYZE webhook_undelivered, webhook_delivered`)
	const few = 20 // blocks; the table has over 1,000
	for _, statement := range purgeStatements {
		if n, plan := blocks(t, w.pool, statement, w.opts.Retention, purgeBatch); n > few {
			t.Errorf("%d blocks:\n%s", n, plan)
		}
	}
	if n, plan := blocks(t, w.pool, purgeDelivered, w.opts.Retention, purgeBatch, int64(400), int64(401)); n > few {
		t.Errorf("%d blocks:\n%s", n, plan)
	}
	perform(t, w, `UPDATE webhook_undelivered SET at = now() - interval '25 hours', due = now() - interval '25 hours' WHERE id = 8`)
	if gone, _, err := w.purge(t.Context(), -1, 10); err != nil || gone != 1 {
		t.Errorf("%d deleted, %v", gone, err)
	}
}

// TestWALOfADelivery bounds the WAL of one delivery, from its row to its result. A busy machine makes
// smaller batches of results, so the best of several rounds counts.
func TestWALOfADelivery(t *testing.T) {
	const n, batch, rounds = 1000, 20, 8
	pool, err := postgres.Open(t.Context(), testenv.NewPostgresServer(t).URL(), postgres.Options{MaxConns: 8, BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := newSink(t, nil)
	w := New(pool, Options{AllowPrivate: true})
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	wal := func() (records, octets float64) {
		t.Helper()
		pool.Reset() // a server process reports when it exits
		if err := pool.QueryRow(t.Context(), `SELECT wal_records, wal_bytes FROM pg_stat_wal`).Scan(&records, &octets); err != nil {
			t.Fatal(err)
		}
		return records, octets
	}
	round := func(number int) (records, octets float64) {
		before, octetsBefore := wal()
		for from := number*n + 1; from <= (number+1)*n; from += batch {
			enqueue(t, w, 1, int64(from), batch)
			eventually(t, "a batch called", func() bool { return s.count() >= from+batch-1 })
		}
		eventually(t, "all delivered", func() bool { return countState(t, w, delivered) == (number+1)*n })
		eventually(t, "the figures", func() bool { records, octets = wal(); return records > before+2*n })
		return (records - before) / n, (octets - octetsBefore) / n
	}
	round(0)
	for number := 1; ; number++ {
		records, octets := round(number)
		t.Logf("%.2f records, %.0f octets a delivery", records, octets)
		if records <= 2.6 && octets <= 370 {
			return
		}
		if number == rounds {
			t.Fatal("want 2.6 and 370 at most")
		}
	}
}
