package webhooks

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

const holdsLock = ` FROM pg_locks WHERE locktype = 'advisory' AND granted AND (classid, objid) = (` + ownerLock + `)
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

func epochOf(t testing.TB, w *Webhooks) (epoch int64) {
	t.Helper()
	if err := w.pool.QueryRow(context.Background(), `SELECT epoch FROM webhook_owner`).Scan(&epoch); err != nil {
		t.Fatal(err)
	}
	return epoch
}

// TestTakeOver: of two processes one delivers; when its connection falls, the
// other does, and nothing is called twice but what was in hand.
func TestTakeOver(t *testing.T) {
	pool := batchPool(t)
	s := newSink(t, nil)
	opts := quickly()
	opts.Timeout = patience
	one, two := New(pool, opts), New(batchPoolOf(t, pool), opts)
	setEndpoint(t, one, 1, s.URL)
	stop := run(t, one)
	run(t, two)
	eventually(t, "one of them delivers", func() bool { return epochOf(t, one) == 1 })
	enqueue(t, one, 1, 1, 500)
	eventually(t, "all delivered", func() bool { return countState(t, one, delivered) == 500 })
	perform(t, one, `SELECT pg_terminate_backend(pid)`+holdsLock)
	enqueue(t, one, 1, 1000, 500)
	eventually(t, "another tenure", func() bool { return epochOf(t, one) > 1 })
	eventually(t, "all delivered again", func() bool { return countState(t, one, delivered) == 1000 })
	stop() // whoever it is
	enqueue(t, one, 1, 2000, 500)
	eventually(t, "all delivered by who is left", func() bool { return countState(t, one, delivered) == 1500 })
	if n := s.count(); n < 1500 || n > 1500+500 {
		t.Errorf("%d calls of 1500 deliveries", n)
	}
}

// TestOwnerBehindSilentHost: of several hosts of the database the first takes
// connections and says nothing.
func TestOwnerBehindSilentHost(t *testing.T) {
	pool := batchPool(t)
	run(t, New(testenv.BehindSilentHost(t, pool), quickly()))
	w := New(pool, quickly())
	eventually(t, "it delivers", func() bool { return epochOf(t, w) == 1 })
}

// TestFrozenOwner: an owner that holds the lock and whose heartbeat stands still has its
// connection cut, and no other: not one whose heartbeats go on while the database's clock is
// set ahead and back, and not later because the last heartbeat is in the future.
func TestFrozenOwner(t *testing.T) {
	pool := batchPool(t)
	clock := testenv.NewClock(t, pool)
	s := newSink(t, nil)
	opts := quickly()
	opts.ownerDeadAfter = 4 * time.Second
	w := New(pool, opts)
	setEndpoint(t, w, 1, s.URL)
	frozen, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = frozen.Close(context.Background()) }()
	if _, err := frozen.Exec(t.Context(), `SELECT pg_advisory_lock(`+ownerLock+`)`); err != nil {
		t.Fatal(err)
	}
	run(t, w)
	for i, end := 0, time.Now().Add(6*time.Second); time.Now().Before(end); i++ {
		clock.Set([]time.Duration{0, time.Hour, -time.Hour}[i%3])
		if _, err := frozen.Exec(t.Context(), `UPDATE webhook_owner SET beat = now()`); err != nil {
			t.Fatalf("an owner that lives was cut off: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	perform(t, w, `UPDATE webhook_owner SET beat = now() + interval '1 hour'`)
	clock.Set(0)
	enqueue(t, w, 1, 1, 1)
	if d := only(t, w, 1); d.State != StatePending {
		t.Error("two deliver at a time")
	}
	inState(t, w, 1, StateDelivered)
}

// TestDeafCandidate: a process that did not look for a while, because it slept or the database
// was away, does not take the owner for dead before it had the time to be heard.
func TestDeafCandidate(t *testing.T) {
	pool := batchPool(t)
	d := &deliverer{Webhooks: New(pool, quickly())}
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = conn.Close(context.Background()), owner.Close(context.Background()) }()
	if _, err := owner.Exec(t.Context(), `SELECT pg_advisory_lock(`+ownerLock+`)`); err != nil {
		t.Fatal(err)
	}
	c := candidate{conn: conn, dead: time.Minute}
	looks := func() {
		t.Helper()
		if err := d.cutDeadOwner(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	looks()
	c.heard, c.asked = c.heard.Add(-2*time.Minute), c.asked.Add(-2*time.Minute)
	looks()
	if err := owner.Ping(t.Context()); err != nil {
		t.Fatalf("an owner was cut off by one that did not look: %v", err)
	}
	c.heard = c.heard.Add(-61 * time.Second)
	looks()
	if err := owner.Ping(t.Context()); err == nil {
		t.Error("an owner whose heartbeat stands still has its connection")
	}
}

// TestSleeperWritesNothing: what a process has in hand when another takes over
// is not recorded by it, whatever came of it.
func TestSleeperWritesNothing(t *testing.T) {
	release := make(chan struct{})
	var calls atomic.Int64
	s := newSink(t, func(http.ResponseWriter, *http.Request) {
		if calls.Add(1) == 1 {
			<-release
		}
	})
	opts := quickly()
	opts.Timeout = patience
	w := New(batchPool(t), opts)
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 1)
	eventually(t, "a call in flight", func() bool { return calls.Load() == 1 })
	perform(t, w, `UPDATE webhook_owner SET epoch = epoch + 1`) // another has taken over, and gone
	eventually(t, "it takes over in its turn", func() bool { return epochOf(t, w) == 3 })
	inState(t, w, 1, StateDelivered)
	close(release)
	enqueue(t, w, 1, 2, 1)
	inState(t, w, 2, StateDelivered)
	if d := only(t, w, 1); len(d.Attempts) != 1 || calls.Load() != 3 {
		t.Errorf("%d attempts recorded after %d calls, want 1 after 3", len(d.Attempts), calls.Load())
	}
	late := result{job: job{seq: 1, id: idSpan}, endpoint: callee{1, s.URL}, state: exhausted, attempt: Attempt{At: time.Now(), Result: result5xx}}
	if stored, err := w.store(t.Context(), 2, []result{late}, false); err != nil || stored {
		t.Errorf("stored %v, %v", stored, err)
	}
	if d := only(t, w, 1); d.State != StateDelivered || len(d.Attempts) != 1 {
		t.Errorf("%+v", d)
	}
}

// TestLeaseBeginsAmidStoring: a process that loses its lease and begins the next one while
// it stores results stores them, although the statement carries the epoch before.
func TestLeaseBeginsAmidStoring(t *testing.T) {
	const n = 20
	s := newSink(t, nil)
	w := New(batchPool(t), quickly())
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	eventually(t, "it delivers", func() bool { return epochOf(t, w) == 1 })
	attempts, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = attempts.Rollback(context.Background()) }()
	if _, err := attempts.Exec(t.Context(), `LOCK webhook_attempts`); err != nil {
		t.Fatal(err)
	}
	enqueue(t, w, 1, 1, n)
	eventually(t, "results wait to be stored", func() bool {
		var waits bool
		err := w.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'webhook_attempts'::regclass)`).Scan(&waits)
		return err == nil && waits
	})
	perform(t, w, `SELECT pg_terminate_backend(pid)`+holdsLock)
	eventually(t, "the next lease", func() bool { return epochOf(t, w) == 2 })
	if err := attempts.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all stored", func() bool { return countState(t, w, delivered) == n })
	if s.count() != n {
		t.Errorf("%d calls of %d deliveries", s.count(), n)
	}
}

// TestStoredOnce: a batch that was stored although no answer came is not stored
// a second time.
func TestStoredOnce(t *testing.T) {
	w := New(batchPool(t), quickly())
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	enqueue(t, w, 1, 1, 2)
	var batch []result
	for seq := range int64(2) {
		batch = append(batch, result{job: job{seq: seq + 1, id: (seq + 1) * idSpan}, endpoint: callee{1, "http://127.0.0.1:1/"},
			state: delivered, ended: time.Now(), attempt: Attempt{At: time.Now().Truncate(time.Millisecond), Result: result2xx, Status: 204}})
	}
	batch[1].state, batch[1].attempt.Result, batch[1].delay = pending, result5xx, time.Hour
	for _, repeated := range []bool{false, true, true} {
		if stored, err := w.store(t.Context(), epochOf(t, w), batch, repeated); err != nil || !stored {
			t.Fatalf("stored %v, %v", stored, err)
		}
	}
	if d := only(t, w, 1); d.State != StateDelivered || len(d.Attempts) != 1 {
		t.Errorf("%+v", d)
	}
	if d := only(t, w, 2); d.State != StatePending || len(d.Attempts) != 1 || time.Until(*d.NextAt) < 59*time.Minute {
		t.Errorf("%+v", d)
	}
}

// TestLateCommit: a delivery whose transaction ends after others with higher
// numbers is delivered, and nobody who takes over meanwhile passes it by.
func TestLateCommit(t *testing.T) {
	s := newSink(t, nil)
	w := New(batchPool(t), quickly())
	setEndpoint(t, w, 1, s.URL)
	stop := run(t, w)
	enqueue(t, w, 1, 1, 1)
	inState(t, w, 1, StateDelivered)
	late, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Rollback(context.Background()) }()
	if err := w.Enqueue(t.Context(), late, []Event{{CompanyID: 1, MessageID: 2, Name: Sent, PhoneNumber: "+25761234567", At: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	enqueue(t, w, 1, 3, 10)
	inState(t, w, 12, StateDelivered)
	stop()
	run(t, w)
	enqueue(t, w, 1, 20, 1)
	inState(t, w, 20, StateDelivered)
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	inState(t, w, 2, StateDelivered)
	if n := s.count(); n != 13 {
		t.Errorf("%d calls, want 13", n)
	}
}

// TestMoreThanMemoryHolds: what does not fit into memory is written down, and
// delivered in its turn, once.
func TestMoreThanMemoryHolds(t *testing.T) {
	const n = maxWaiting + 1000
	answers := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answers) })
	defer answer()
	s := newSink(t, func(rw http.ResponseWriter, _ *http.Request) {
		<-answers
		rw.WriteHeader(http.StatusNoContent)
	})
	opts := quickly()
	opts.Timeout = patience
	w := New(batchPool(t), opts)
	setEndpoint(t, w, 1, s.URL)
	enqueue(t, w, 1, 1, n)
	run(t, w)
	eventually(t, "some wait in the database alone", func() (parked bool) {
		if err := w.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM webhook_undelivered)`).Scan(&parked); err != nil {
			t.Fatal(err)
		}
		return parked
	})
	answer()
	eventually(t, "all delivered", func() bool { return countState(t, w, delivered) == n })
	if s.count() != n {
		t.Errorf("%d calls of %d deliveries", s.count(), n)
	}
}

// TestForget: what is older than the retention leaves with all that belongs to
// it, and is not there to be looked up or sent again.
func TestForget(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true, Retention: 24 * time.Hour})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	giveUp(t, w, 1, 1, forgetBatch+10)
	perform(t, w, `INSERT INTO webhook_attempts (seq, at, ms, status, result) SELECT seq, now(), 1, 500, '5xx' FROM webhook_deliveries`)
	perform(t, w, `UPDATE webhook_deliveries SET at = now() - interval '25 hours' WHERE seq <= $1`, forgetBatch+5)
	last := int64(0)
	for range 3 {
		gone, err := w.deleteBatch(t.Context(), last)
		if err != nil {
			t.Fatal(err)
		}
		last = max(last, gone)
	}
	for _, table := range []string{"webhook_deliveries", "webhook_attempts", "webhook_undelivered"} {
		var n int
		if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil || n != 5 {
			t.Errorf("%s has %d left, %v", table, n, err)
		}
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

// TestWALOfADelivery: what one delivery costs in the log, from its row to its
// result, cannot creep. A busy machine makes smaller batches of results: the best
// of some rounds counts.
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
		pool.Reset() // a server process reports when it goes
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
		eventually(t, "the figures", func() bool { records, octets = wal(); return records > before+4.5*n })
		return (records - before) / n, (octets - octetsBefore) / n
	}
	round(0)
	for number := 1; ; number++ {
		records, octets := round(number)
		t.Logf("%.2f records, %.0f octets a delivery", records, octets)
		if records <= 5.6 && octets <= 500 {
			return
		}
		if number == rounds {
			t.Fatal("want 5.6 and 500 at most")
		}
	}
}
