package webhooks

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkDeliver covers the path from the enqueueing transaction to the stored
// result. The receiver runs on loopback in this process, so its CPU is in the figures.
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
		for int64(from)-arrived.Load() > 20_000 { // the rest of the gateway is no faster
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

// answering returns 200 for each request without allocating.
func answering(conn net.Conn) {
	var room [4096]byte
	for {
		n, err := conn.Read(room[:])
		if err != nil {
			return
		}
		if room[n-1] == '}' { // the end of the body
			say(conn, "HTTP/1.1 200 OK\r\nDate: Mon, 23 Nov 2026 15:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: "+
				"2\r\n\r\nok")
		}
	}
}

// BenchmarkCall is one attempt over a kept connection, including the receiver's system
// calls.
func BenchmarkCall(b *testing.B) {
	call := callWith(b, New(nil, Options{AllowPrivate: true}), serve(b, answering))
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

// TestCallAllocatesLittle: a call makes 9 allocations, or 17 with the race detector; net/http's transport would make
// 53.
func TestCallAllocatesLittle(t *testing.T) {
	call := callWith(t, New(nil, Options{AllowPrivate: true}), serve(t, answering))
	if n := testing.AllocsPerRun(200, func() { call() }); n > 20 {
		t.Errorf("%.0f allocations a call", n)
	}
}
