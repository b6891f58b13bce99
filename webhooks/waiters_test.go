package webhooks

import (
	"context"
	"testing"
	"time"
)

// TestAwait: a waiting consumer is woken at once by a commit of its process, and within a second by another's. Waits
// end with their time, their client and the process.
func TestAwait(t *testing.T) {
	pool := batchPool(t)
	w, other := New(pool, quickly()), New(pool, quickly())
	_, place := pull(t, w, 1, Place{}, 1)
	waits := func(ctx context.Context, until time.Duration) (ended chan time.Duration) {
		ended = make(chan time.Duration, 1)
		start := time.Now()
		go func() { w.Await(ctx, 1, place, start.Add(until)); ended <- time.Since(start) }()
		eventually(t, "it waits", func() bool {
			w.waiters.mu.Lock()
			defer w.waiters.mu.Unlock()
			return len(
				w.waiters.of[1]) > 0
		})
		return ended
	}
	over := func(what string, ended chan time.Duration, least, most time.Duration) {
		t.Helper()
		if took := <-ended; took < least || took > most+patience/2 { // a busy machine
			t.Errorf("%s: ended after %s", what, took)
		}
	}
	ended := waits(t.Context(), patience)
	enqueue(t, w, 1, 1, 1)
	over("an event of this process", ended, 0, 0)
	_, place = pull(t, w, 1, place, 10)
	ended = waits(t.Context(), patience)
	enqueue(t, other, 1, 2, 1)
	over("an event of another process", ended, 0, time.Second)
	_, place = pull(t, w, 1, place, 10)
	ended = waits(t.Context(), patience)
	enqueue(t, other, 1, 3, 1)
	pull(t, other, 1, place, 10) // another consumer gave it its position
	over("an event that has a position", ended, 0, time.Second)
	_, place = pull(t, w, 1, place, 10)
	enqueue(t, w, 2, 4, 1)
	over("no event", waits(t.Context(), 700*time.Millisecond), 700*time.Millisecond, 700*time.Millisecond)
	ctx, gone := context.WithCancel(t.Context())
	ended = waits(ctx, patience)
	gone()
	over("the client goes", ended, 0, 0)
	ended = waits(t.Context(), patience)
	w.EndWaits()
	w.EndWaits()
	over("the process ends", ended, 0, 0)
	if len(w.waiters.of) != 0 {
		t.Error("a waiter is left")
	}
}
