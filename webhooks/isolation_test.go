package webhooks

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TestHangingEndpointsDelayNobody: more endpoints hang than their class has slots, each with a
// backlog; meanwhile another company's events arrive.
func TestHangingEndpointsDelayNobody(t *testing.T) {
	const hanging, backlog = 40, 50
	opts := quickly()
	opts.Timeout = 20 * time.Second
	opts.Drain = 100 * time.Millisecond
	opts.InFlight = 64 // 16 of them for slow endpoints, 16 for unknown ones
	w := New(batchPool(t), opts)
	var hung atomic.Int64
	dead, alive := newSink(t, func(rw http.ResponseWriter, r *http.Request) {
		hung.Add(1)
		defer hung.Add(-1)
		hang(rw, r)
	}), newSink(t, nil)
	known, unknown := int64(1000), int64(1001)
	setEndpoint(t, w, known, alive.URL)
	setEndpoint(t, w, unknown, alive.URL)
	for company := range int64(hanging) {
		setEndpoint(t, w, company+1, dead.URL)
	}
	run(t, w)
	enqueue(t, w, known, 1, 1)
	inState(t, w, 1, "delivered")

	for company := range int64(hanging) {
		enqueue(t, w, company+1, 1_000_000*(company+1), backlog)
	}
	eventually(t, "hanging calls", func() bool { return dead.count() >= 16 })
	start := time.Now()
	enqueue(t, w, known, 100, 500)
	eventually(t, "the others' events", func() bool { return alive.count() == 501 })
	if took := time.Since(start); took > 2*opts.Timeout/3 { // before any hanging call has ended
		t.Errorf("the others' events took %s", took)
	}
	// Unknown endpoints hold at most their own slots. Calls that hang end at the timeout and mark
	// their endpoints as slow.
	enqueue(t, w, unknown, 2000, 1)
	eventually(t, "an unknown endpoint's event", func() bool { return alive.count() == 502 })
	// A server notices a little late that its caller has gone.
	if n := hung.Load(); n > 2*(16+16) {
		t.Errorf("%d calls hang at a time", n)
	}
}

// TestFailingEndpointIsNotFlooded: however large its backlog, an endpoint that returns 503 never
// has more than a few calls at a time.
func TestFailingEndpointIsNotFlooded(t *testing.T) {
	now := make(chan struct{}, 1000)
	most := make(chan int, 1)
	most <- 0
	s := newSink(t, func(rw http.ResponseWriter, _ *http.Request) {
		now <- struct{}{}
		m := <-most
		most <- max(m, len(now))
		rw.WriteHeader(http.StatusServiceUnavailable)
		<-now
	})
	opts := quickly()
	opts.RetryDelays = []time.Duration{}
	w := New(batchPool(t), opts)
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 300)
	eventually(t, "all tried", func() bool { return s.count() == 300 })
	if m := <-most; m > 4 {
		t.Errorf("%d calls at a time", m)
	}
}

// TestOneEndpointsShare: an endpoint that was quick until it had its full share of calls, and then
// hangs, leaves the other endpoints theirs.
func TestOneEndpointsShare(t *testing.T) {
	opts := quickly()
	opts.InFlight = 32
	opts.Timeout = patience // no deadline frees a slot
	opts.Drain = 50 * time.Millisecond
	w := New(batchPool(t), opts)
	var hold atomic.Bool
	var held atomic.Int64
	greedy := newSink(t, func(rw http.ResponseWriter, r *http.Request) {
		if hold.Load() {
			held.Add(1)
			hang(rw, r)
		}
	})
	other := newSink(t, nil)
	setEndpoint(t, w, 1, greedy.URL)
	setEndpoint(t, w, 2, other.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 200)
	enqueue(t, w, 2, 100_000, 10)
	eventually(t, "both are known as quick", func() bool { return greedy.count() == 200 && other.count() == 10 })
	hold.Store(true)
	enqueue(t, w, 1, 1000, 200)
	eventually(t, "it hangs", func() bool { return held.Load() > 0 })
	enqueue(t, w, 2, 200_000, 50)
	eventually(t, "the other is told", func() bool { return other.count() == 60 })
	if n := held.Load(); n > 32/8 {
		t.Errorf("one endpoint holds %d of 32 calls", n)
	}
}

// filled sets up just enough quick endpoints, of the companies from 1, to take all the calls of
// the process, and one more. It returns their number without the extra one.
func filled(t *testing.T, w *Webhooks, url, other string) (companies int64) {
	t.Helper()
	companies = int64(w.opts.InFlight / w.opts.mostCalls())
	for company := range companies {
		setEndpoint(t, w, company+1, url)
	}
	setEndpoint(t, w, companies+1, other)
	d := w.running.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	for company := range companies + 1 {
		e := newWorker(company + 1)
		e.known, e.limit = true, w.opts.mostCalls()
		d.workers[company+1] = e
	}
	return companies
}

// TestBacklogsShareTheCalls: quick endpoints with backlogs could take all calls of the process,
// but another endpoint's event is posted long before their backlogs end.
func TestBacklogsShareTheCalls(t *testing.T) {
	const backlog = 600
	opts := quickly()
	opts.InFlight = 64
	pool := batchPool(t)
	w, elsewhere := New(pool, opts), New(pool, opts)
	busy := newSink(t, func(rw http.ResponseWriter, _ *http.Request) {
		time.Sleep(200 * time.Millisecond)
		rw.WriteHeader(http.StatusNoContent)
	})
	other := newSink(t, nil)
	run(t, w)
	eventually(t, "it runs", func() bool { return w.running.Load() != nil })
	companies := filled(t, w, busy.URL, other.URL)
	for company := range companies {
		enqueue(t, elsewhere, company+1, 1_000_000*(company+1), backlog)
	}
	eventually(t, "all calls are theirs", func() bool {
		d := w.running.Load()
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.free == 0
	})
	before := busy.count()
	enqueue(t, elsewhere, companies+1, 1, 1)
	eventually(t, "the other's event", func() bool { return other.count() == 1 })
	if n := busy.count() - before; n > int(companies)*backlog/2 { // with the defect, seven eighths came first
		t.Errorf("%d calls for the backlogs came first", n)
	}
}

// TestNewEventsDoNotOvertakeForEver: while new events fill an endpoint's room, deliveries that
// wait in the database are still made.
func TestNewEventsDoNotOvertakeForEver(t *testing.T) {
	opts := quickly()
	pool := batchPool(t)
	w, elsewhere := New(pool, opts), New(pool, opts)
	s := newSink(t, func(rw http.ResponseWriter, _ *http.Request) {
		time.Sleep(200 * time.Millisecond)
		rw.WriteHeader(http.StatusNoContent)
	})
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	eventually(t, "it runs", func() bool { return w.running.Load() != nil })
	makeQuick(w)
	enqueue(t, w, 1, 1000, 256) // the room is full
	enqueue(t, elsewhere, 1, 1, 1)
	next := int64(2000)
	for deadline := time.Now().Add(patience); only(t, w, 1).State != StateDelivered; next += 20 {
		if time.Now().After(deadline) {
			t.Fatalf("%d calls, and an event that came before them still waits", s.count())
		}
		enqueue(t, w, 1, next, 20)
		time.Sleep(50 * time.Millisecond)
	}
}
