package queue_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"intumwa/queue"
)

// beltOf makes a belt on a test's own server.
func beltOf(t testing.TB, url string) (*queue.Belt, *redis.Client) {
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
	belt, client, prefix := newBelt(b)
	items := singles(1, 100)
	b.ReportAllocs()
	for b.Loop() {
		if err := belt.Push(b.Context(), items); err != nil {
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
			belt, _, _ := newBelt(b)
			items := singles(1, 100)
			for i := range items {
				items[i].Lane, items[i].CompanyID = lane, int64(i%5+1)
			}
			b.ReportAllocs()
			for b.Loop() {
				push(b, belt, items)
				entries := take(b, belt, lane, "a", 100)
				if len(entries) != 100 {
					b.Fatalf("took %d", len(entries))
				}
				done(b, belt, lane, entries)
			}
			b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func BenchmarkTakeDone100(b *testing.B) {
	belt, _, _ := newBelt(b)
	items := singles(1, 100)
	for b.Loop() {
		b.StopTimer()
		push(b, belt, items)
		b.StartTimer()
		done(b, belt, queue.Single, take(b, belt, queue.Single, "a", 100))
	}
	b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "msg/s")
}
