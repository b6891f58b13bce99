package dispatcher

import (
	"context"
	"sync"
	"testing"
	"time"

	"intumwa/queue"
)

// TestYieldsInTime: a link whose worker waits for the database, to give back what it had claimed, unbinds all the same when that
// has not heard of this process.
func TestYieldsInTime(t *testing.T) {
	t.Parallel()
	inTime := func() bool {
		b := newBench(t)
		tx, err := b.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := b.begun(0)
		if _, err := tx.Exec(t.Context(), `LOCK TABLE outbox`); err != nil {
			t.Fatal(err)
		}
		w := b.worker
		w.prefetch.put(queue.Single, []*inFlight{m})
		ctx, cancel := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		loops.Go(func() { w.watch(ctx) })
		loops.Go(func() { w.watchSilence(ctx) })
		defer func() { _ = tx.Rollback(context.Background()); cancel(); loops.Wait() }()
		for b.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
			time.Sleep(time.Millisecond)
		}
		waits := time.Now()
		w.d.member.beat.Store(-int64(time.Hour))
		for {
			w.binds.mu.Lock()
			down := !w.binds.may
			w.binds.mu.Unlock()
			if down {
				return time.Since(waits) < 1500*time.Millisecond // it waits for 2 s
			}
			time.Sleep(time.Millisecond)
		}
	}
	for range 5 { // a machine may be slow
		if inTime() {
			return
		}
	}
	t.Error("it does not unbind before the database has answered")
}

// TestYielding: binds come up again at once after a silence, and later and later where one follows the other.
func TestYielding(t *testing.T) {
	var y yielding
	now := time.Now()
	silence := func() { now = now.Add(time.Second); y.next(true, now) }
	downFor := func() (d time.Duration) {
		for from := now; y.next(false, now); now = now.Add(100 * time.Millisecond) {
			if d = now.Sub(from); d > time.Hour {
				t.Fatal("they never come up")
			}
		}
		return d
	}
	for i, want := range []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60} {
		silence()
		if !y.now {
			t.Fatal("they are up during a silence")
		}
		if got := downFor(); got > want*time.Second || got < want*time.Second-time.Second {
			t.Errorf("silence %d: down for %s, want %d s", i+1, got, want)
		}
	}
	now = now.Add(yieldForgets)
	silence()
	if got := downFor(); got != 0 {
		t.Errorf("long after: down for %s", got)
	}
}
