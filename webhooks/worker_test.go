package webhooks

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestShutdown: calls in progress end and are stored. Deliveries that are not called or
// are cut off are given back for the next process.
func TestShutdown(t *testing.T) {
	var hanging atomic.Bool
	release := make(chan struct{})
	s := newSink(t, func(rw http.ResponseWriter, r *http.Request) {
		if hanging.Load() {
			hang(rw, r)
			return
		}
		<-release
	})
	opts := quickly()
	opts.Timeout, opts.Drain = patience, patience
	pool := batchPool(t)
	w := New(pool, opts)
	setEndpoint(t, w, 1, s.URL)
	stop := run(t, w)
	enqueue(t, w, 1, 1, 10)
	eventually(t, "a call under way", func() bool { return s.count() == 1 })
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	stop()
	if n := countState(t, w, delivered); n != 1 || s.count() != 1 {
		t.Errorf("%d stored of %d requests, want 1", n, s.count())
	}

	hanging.Store(true)
	opts.Drain = 300 * time.Millisecond
	w = New(pool, opts)
	stop = run(t, w)
	eventually(t, "hanging calls", func() bool { return s.count() == 2 })
	start := time.Now()
	stop()
	if took := time.Since(start); took > opts.Timeout/2 {
		t.Errorf("stopping took %s", took)
	}
	if n := countState(t, w, pending); n != 9 {
		t.Errorf("%d are left, want 9", n)
	}
	hanging.Store(false)
	run(t, w)
	eventually(t, "the next process' calls", func() bool { return countState(t, w, delivered) == 10 })
	if n := s.count(); n != 11 { // the call that was cut off is repeated
		t.Errorf("%d calls in all, want 11", n)
	}
}

func TestIdleWorkerFindsWithoutKick(t *testing.T) {
	s := newSink(t, nil)
	pool := batchPool(t)
	opts := quickly()
	opts.Idle = 0 // the default
	w, elsewhere := New(pool, opts), New(pool, opts)
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	eventually(t, "idle", func() bool { return len(w.kick) == 0 })
	start := time.Now()
	enqueue(t, elsewhere, 1, 1, 1)
	eventually(t, "found", func() bool { return s.count() == 1 })
	if took := time.Since(start); took > 10*time.Second { // a quarter of a second on an idle machine
		t.Errorf("found after %s", took)
	}
}

func TestMetrics(t *testing.T) {
	s := newSink(t, status(500))
	opts := quickly()
	opts.RetryDelays = []time.Duration{time.Millisecond}
	registry := prometheus.NewRegistry()
	opts.Metrics = registry
	w := New(batchPool(t), opts)
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 2)
	inState(t, w, 1, StateFailed)
	inState(t, w, 2, StateFailed)
	got := gathered(t, registry)
	for series, want := range map[string]float64{
		"intumwa_webhook_attempts_total sms.sent 5xx":   4,
		"intumwa_webhook_attempts_total sms.failed 2xx": 0,
		"intumwa_webhook_attempt_duration_seconds":      4,
		"intumwa_webhook_exhausted_total":               2,
		"intumwa_webhook_endpoints active":              1,
		"intumwa_webhook_endpoints inactive":            0,
	} {
		if value, ok := got[series]; !ok || value != want {
			t.Errorf("%s is %v, want %v", series, value, want)
		}
	}
	if _, ok := got["intumwa_webhook_queue_oldest_age_seconds"]; !ok {
		t.Error("the oldest age is not exported")
	}
}

// gathered returns the value of every series, or a histogram's count; the labels follow
// the name in their order.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			series := family.GetName()
			for _, label := range metric.GetLabel() {
				series += " " + label.GetValue()
			}
			values[series] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values
}

func countState(t testing.TB, w *Webhooks, s deliveryState) (n int) {
	t.Helper()
	if err := w.pool.QueryRow(context.Background(), `
		SELECT count(*) FROM webhook_deliveries WHERE $1 = CASE WHEN delivered THEN 1 WHEN due = 'infinity' THEN 2
			ELSE 0 END`, s).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestShutdownGivesBackWhatHadNoRoom: this includes handed-over deliveries of an
// endpoint without a call.
func TestShutdownGivesBackWhatHadNoRoom(t *testing.T) {
	opts := quickly()
	opts.InFlight = 64
	opts.Drain = 50 * time.Millisecond
	w := New(batchPool(t), opts)
	s := newSink(t, hang)
	stop := run(t, w)
	eventually(t, "it runs", func() bool { return w.running.Load() != nil })
	companies := filled(t, w, s.URL, s.URL)
	var events []Event
	for company := range companies + 1 {
		for n := range int64(w.opts.mostCalls()) {
			events = append(events, Event{CompanyID: company + 1, MessageID: 1000*(company+1) + n, Name: Sent,
				PhoneNumber: "+25761234567", At: time.Now()})
		}
	}
	enqueueAll(t, w, events)
	stop()
	var claimed int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) + (SELECT count(*) FROM webhook_first_calls)
		FROM webhook_undelivered WHERE claimed_until IS NOT NULL`).Scan(&claimed); err != nil || claimed != 0 {
		t.Errorf("%d are still claimed, %v", claimed, err)
	}
}
