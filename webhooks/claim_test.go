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
	if err := w.Enqueue(t.Context(), late, []Event{
		{CompanyID: 1, MessageID: 2, Name: Sent, PhoneNumber: "+25761234567", At: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Exec(t.Context(), `UPDATE webhook_undelivered SET due = due - interval '1 hour' WHERE id = $1`,
		2*idSpan); err != nil {
		// it began an hour ago
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
	waitsIn := func(backend int32) (waits bool) { // 0: in any
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'
			AND $1 IN (pid, 0))`, backend).Scan(&waits)
		return err == nil && waits
	}
	waits := func() bool { return waitsIn(0) }
	var abandoned atomic.Int32 // the process whose commit is given up; Run's commits may wait too
	// An abandoned commit is visible anyway.
	givenUp := func(do func(ctx context.Context, tx pgx.Tx) error) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
				var pid int32
				if err := tx.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
					return err
				}
				abandoned.Store(pid)
				return do(ctx, tx)
			})
		}()
		eventually(t, "a commit waits for its standby",
			func() bool { return abandoned.Load() != 0 && waitsIn(abandoned.Load()) })
		cancel()
		if err := <-done; err == nil {
			t.Fatal("a commit did not wait for its standby")
		}
		eventually(t, "it is given up", func() bool { return !waitsIn(abandoned.Load()) })
		abandoned.Store(0)
	}
	givenUp(func(ctx context.Context, tx pgx.Tx) error {
		if err := w.Enqueue(ctx, tx, []Event{{CompanyID: 1, MessageID: 100, Name: Sent, PhoneNumber: "+25761234567",
			At: time.Now()}}); err != nil {
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
	if err := w.Enqueue(t.Context(), tx, []Event{
		{CompanyID: 1, MessageID: 1, Name: Sent, PhoneNumber: "+25761234567", At: time.Now()}}); err != nil {
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
	if d := only(t, w, 1); d.State != StatePending || d.NextAt == nil || d.NextAt.After(postgres.Now()) ||
		len(d.Attempts) != 0 {
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
	if list, _, err := w.Deliveries(t.Context(), 1, Filter{State: StatePending}, 0, 10); err != nil || len(list) != 1 ||
		list[0].NextAt == nil {
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
	w := New(batchPool(t), quickly())
	d := newDeliverer(t.Context(), w.core)
	setEndpoint(t, w, 1, s.URL)
	enqueue(t, w, 1, 1, 1)
	taken, err := d.claim(t.Context(), []wish{{worker: newWorker(1), most: 1}})
	if err != nil || len(taken[1].jobs) != 1 {
		t.Fatal(taken, err)
	}
	late := taken[1].jobs[0]
	late.beginBy = time.Now().Add(-time.Second)
	d.attempt(newWorker(1), late)
	if d := only(t, w, 1); s.count() != 0 || d.State != StatePending || len(d.Attempts) != 0 {
		t.Errorf("%d calls, %+v", s.count(), d)
	}
	perform(t, w, `UPDATE webhook_undelivered SET claimed_until = now()`)
	run(t, w)
	inState(t, w, 1, StateDelivered)
}

// TestStoredOnce: a batch that was stored without a reply is not stored twice.
func TestStoredOnce(t *testing.T) {
	w := New(batchPool(t), quickly())
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	enqueue(t, w, 1, 1, 2)
	taken, err := w.claim(t.Context(), []wish{{worker: newWorker(1), most: 2}})
	if err != nil || len(taken[1].jobs) != 2 {
		t.Fatalf("%+v, %v", taken, err)
	}
	var results []outcome
	for _, j := range taken[1].jobs {
		results = append(results, outcome{job: *j, state: delivered, ended: time.Now(),
			attempt: Attempt{At: time.Now().Truncate(time.Millisecond), Result: result2xx, Status: 204}})
	}
	results[1].state, results[1].attempt.Result, results[1].delay = pending, result5xx, time.Hour
	for range 3 {
		if err := w.store(t.Context(), results); err != nil {
			t.Fatal(err)
		}
	}
	if d := only(t, w, 1); d.State != StateDelivered || len(d.Attempts) != 1 {
		t.Errorf("%+v", d)
	}
	if d := only(t, w, 2); d.State != StatePending || len(d.Attempts) != 1 || time.Until(*d.NextAt) < 59*time.Minute {
		t.Errorf("%+v", d)
	}
}
