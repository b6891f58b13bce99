package webhooks

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TestHangingEndpointsDelayNobody: more endpoints hang than there are slots for
// their class, each with a backlog; another company's events arrive meanwhile.
func TestHangingEndpointsDelayNobody(t *testing.T) {
	const hanging, backlog = 40, 50
	opts := quickly()
	opts.Timeout = 9 * time.Second
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
	if took := time.Since(start); took > 2*opts.Timeout/3 { // before any call that hangs has ended
		t.Errorf("the others' events took %s", took)
	}
	// At most the slots of unknown endpoints are held; the calls that hang on
	// them end at the timeout, and from then on their endpoints are known as slow.
	enqueue(t, w, unknown, 2000, 1)
	eventually(t, "an unknown endpoint's event", func() bool { return alive.count() == 502 })
	// A server learns a little late that its caller has gone.
	if n := hung.Load(); n > 2*(16+16) {
		t.Errorf("%d calls hang at a time", n)
	}
}

// TestFailingEndpointIsNotFlooded: however large its backlog, an endpoint that
// answers 503 never has more than a few calls at a time.
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

// TestOneEndpointsShare: an endpoint that was quick until it had all the calls
// that it may have, and then hangs, leaves the others of its pool theirs.
func TestOneEndpointsShare(t *testing.T) {
	opts := quickly()
	opts.InFlight = 32
	opts.Timeout = patience // nothing is freed by the deadline
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
