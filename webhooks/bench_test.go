package webhooks

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkDeliver is the way from the enqueueing transaction to the stored
// result, with a receiver on loopback in this process: its CPU is in the figures.
func BenchmarkDeliver(b *testing.B) {
	for _, companies := range []int{1, 100} {
		b.Run(fmt.Sprintf("companies=%d", companies), func(b *testing.B) { benchmarkDeliver(b, companies) })
	}
}

func benchmarkDeliver(b *testing.B, companies int) {
	var arrived atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		rw.WriteHeader(http.StatusNoContent)
	}))
	b.Cleanup(server.Close)

	w := New(batchPool(b), Options{AllowPrivate: true})
	for company := range companies {
		setEndpoint(b, w, int64(company+1), server.URL+"/hook")
	}
	run(b, w)

	const batch = 200
	b.ResetTimer()
	for from := 0; from < b.N; from += batch {
		at := time.Now()
		events := make([]Event, min(batch, b.N-from))
		for i := range events {
			events[i] = Event{CompanyID: int64((from+i)%companies + 1), MessageID: int64(from + i + 1), Name: Sent,
				PhoneNumber: "+25761234567", At: at}
		}
		enqueueAll(b, w, events)
		for int64(from)-arrived.Load() > 20_000 { // the rest of the gateway is not faster
			time.Sleep(time.Millisecond)
		}
	}
	eventually(b, "all arrived", func() bool { return arrived.Load() >= int64(b.N) })
	eventually(b, "all stored", func() bool { return countState(b, w, delivered) == b.N })
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
	if n := arrived.Load(); n != int64(b.N) {
		b.Errorf("%d arrived, want %d", n, b.N)
	}
}
