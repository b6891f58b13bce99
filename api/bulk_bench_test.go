package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkBulk500 is one client that sends 500 recipients at a time to an idle
// gateway: request to answer, the commit included.
func BenchmarkBulk500(b *testing.B) {
	w := newWorld(b, worldOptions{}).settle()
	w.credits("live", 1<<40)
	body := bulkBody(500)
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		w.quick(b, "/v1/sms/bulk", body)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(500*len(took))/b.Elapsed().Seconds(), "recipients/s")
}

// BenchmarkBulk500Crowd is sixteen of them at once.
func BenchmarkBulk500Crowd(b *testing.B) {
	w := newWorld(b, worldOptions{}).settle()
	w.credits("live", 1<<40)
	body := bulkBody(500)
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.quick(b, "/v1/sms/bulk", body)
		}
	})
	b.ReportMetric(float64(500*b.N)/b.Elapsed().Seconds(), "recipients/s")
}

// quick sends without looking at the answer's shape.
func (w *world) quick(b *testing.B, path, body string) {
	req, err := http.NewRequest("POST", w.server.URL+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+w.tokens["live"])
	resp, err := w.server.Client().Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b.Fatalf("status %d", resp.StatusCode)
	}
}

// BenchmarkReadBulk500 is what the API itself does to a body: syntax, fields,
// numbers, lengths.
func BenchmarkReadBulk500(b *testing.B) {
	w := newWorld(b, worldOptions{})
	a := &API{opts: Options{Plan: w.plan}}
	body := bulkBody(500)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		fields, ok := parse(body)
		req, problems := a.readBulk(fields.fields())
		if !ok || !problems.none() || len(req.Recipients) != 500 {
			b.Fatal("refused")
		}
	}
}
