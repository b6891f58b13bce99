package queue_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"intumwa/queue"
)

// queueOn makes a queue on a test's own server.
func queueOn(t testing.TB, url string) (*queue.Queue, *redis.Client) {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return queue.New(client, queue.Options{Prefix: "test"}), client
}

// deleteAll deletes the keys of this test's prefix, as a FLUSHALL would.
func deleteAll(t testing.TB, client *redis.Client, prefix string) {
	t.Helper()
	keys, err := client.Keys(t.Context(), prefix+":*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkPush100(b *testing.B) {
	q, client, prefix := newQueue(b)
	items := singles(1, 100)
	b.ReportAllocs()
	for b.Loop() {
		if err := q.Push(b.Context(), items); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "msg/s")
	deleteAll(b, client, prefix)
}

// BenchmarkPushTakeDone100 is the whole way of a hundred messages.
func BenchmarkPushTakeDone100(b *testing.B) {
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		b.Run(lane.String(), func(b *testing.B) {
			q, _, _ := newQueue(b)
			items := singles(1, 100)
			for i := range items {
				items[i].Lane, items[i].CompanyID = lane, int64(i%5+1)
			}
			b.ReportAllocs()
			for b.Loop() {
				push(b, q, items)
				entries := take(b, q, lane, "a", 100)
				if len(entries) != 100 {
					b.Fatalf("took %d", len(entries))
				}
				done(b, q, lane, entries)
			}
			b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func BenchmarkTakeDone100(b *testing.B) {
	q, _, _ := newQueue(b)
	items := singles(1, 100)
	for b.Loop() {
		b.StopTimer()
		push(b, q, items)
		b.StartTimer()
		done(b, q, queue.Single, take(b, q, queue.Single, "a", 100))
	}
	b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "msg/s")
}
