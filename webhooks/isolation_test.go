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

// TestSlowWhileItIsClaimed: an endpoint that turns slow while its deliveries are claimed
// holds the slots that were reserved, not those of a pool that has none.
func TestSlowWhileItIsClaimed(t *testing.T) {
	s := newSink(t, nil)
	d := newDeliverer(t.Context(), New(batchPool(t), quickly()))
	setEndpoint(t, d.Webhooks, 1, s.URL)
	enqueue(t, d.Webhooks, 1, 1, 8)
	free := d.free
	e := d.worker(1)
	e.class, e.limit = quick, 4
	d.enqueue(e, position{})
	wishes := d.plan()
	found, err := d.claim(t.Context(), wishes)
	if err != nil || len(found[1].jobs) != 4 {
		t.Fatalf("%+v, %v", found, err)
	}
	e.class, d.free[slow] = slow, 0
	d.begin(t.Context(), wishes, found, nil)
	d.mu.Lock()
	if n := d.free[slow]; n != 0 {
		t.Errorf("%d slots of the slow pool are free", n)
	}
	d.mu.Unlock()
	for range 4 {
		<-d.results
	}
	d.calls.Wait()
	if free[slow] = 0; d.free != free || e.runs != 0 {
		t.Errorf("%v are free after all calls, want %v; %d runs", d.free, free, e.runs)
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
