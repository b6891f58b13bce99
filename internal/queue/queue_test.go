package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"intumwa/internal/queue"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const carrier = "lumitel"

func newQueue(t testing.TB) (*queue.Queue, *redis.Client, string) {
	client, prefix := testenv.Redis(t)
	return queue.New(client, queue.Options{Prefix: prefix, Patience: 10 * time.Second}), client, prefix
}

// batchOf returns n batch items of a company, with message ids from first on.
func batchOf(company, first int64, n int) []queue.Item {
	items := make([]queue.Item, n)
	for i := range items {
		items[i] = queue.Item{MessageID: first + int64(i), CompanyID: company, Carrier: carrier, Lane: queue.Batch}
	}
	return items
}

func singles(first int64, n int) []queue.Item {
	items := batchOf(7, first, n)
	for i := range items {
		items[i].Lane = queue.Single
	}
	return items
}

func push(t testing.TB, q *queue.Queue, items []queue.Item) {
	t.Helper()
	if err := q.Push(t.Context(), items); err != nil {
		t.Fatal(err)
	}
}

func take(t testing.TB, q *queue.Queue, lane queue.Lane, max int) []int64 {
	t.Helper()
	messages, err := q.Take(t.Context(), carrier, lane, max, 0)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// TestPushTake: each message is taken once, in order, and nothing stays in Redis.
func TestPushTake(t *testing.T) {
	t.Parallel()
	q, client, prefix := newQueue(t)
	push(t, q, slices.Concat(singles(1, 3), batchOf(7, 10, 2), batchOf(8, 20, 1)))
	if got := take(t, q, queue.Single, 0); len(got) != 0 {
		t.Errorf("took %v of none", got)
	}
	if got := take(t, q, queue.Single, 10); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("took %v", got)
	}
	if again := take(t, q, queue.Single, 10); len(again) != 0 {
		t.Errorf("taken twice: %v", again)
	}
	if got := take(t, q, queue.Batch, 10); len(got) != 3 {
		t.Errorf("took %v", got)
	}
	if keys := client.Keys(t.Context(), prefix+":queue:*").Val(); len(keys) != 0 {
		t.Errorf("keys left: %q", keys)
	}
	push(t, q, nil)
}

// TestOldest: it returns how long the oldest entry of all companies has waited.
func TestOldest(t *testing.T) {
	t.Parallel()
	q, client, prefix := newQueue(t)
	oldest := func() time.Duration {
		t.Helper()
		age, err := q.Oldest(t.Context(), carrier, queue.Batch)
		if err != nil {
			t.Fatal(err)
		}
		return age
	}
	if got := oldest(); got != 0 {
		t.Errorf("an unused lane: %v", got)
	}
	hour := fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli())
	do(t, client, "XADD", prefix+":queue:{"+carrier+"}:batch:stream:2", hour, "m", "21")
	push(t, q, batchOf(1, 1, 2))
	push(t, q, batchOf(2, 22, 2))
	if got := oldest(); got < time.Hour || got > time.Hour+time.Minute {
		t.Errorf("one of an hour ago: %v", got)
	}
	take(t, q, queue.Batch, 3) // the turns of 1, 2, 1
	if got := oldest(); got > time.Minute {
		t.Errorf("it is taken: %v", got)
	}
}

// TestCompaniesTakeTurns: a company with many messages does not delay one with few, and each company's order is kept.
func TestCompaniesTakeTurns(t *testing.T) {
	t.Parallel()
	q, _, _ := newQueue(t)
	const many, few = 3000, 50
	push(t, q, batchOf(1, 1, many))
	push(t, q, batchOf(2, 100_001, few))
	push(t, q, batchOf(3, 200_001, few))
	last := map[int64]int64{}
	taken := map[int64]int{}
	servedBy := 0
	for taken[1]+taken[2]+taken[3] < many+2*few {
		got := take(t, q, queue.Batch, 10)
		if len(got) == 0 {
			t.Fatalf("nothing more after %v", taken)
		}
		for _, message := range got {
			company := message/100_000 + 1
			if message <= last[company] {
				t.Fatalf("company %d: %d after %d", company, message, last[company])
			}
			last[company] = message
			taken[company]++
		}
		if servedBy == 0 && taken[2] == few && taken[3] == few {
			servedBy = taken[1] + 2*few
		}
	}
	if servedBy > 4*few {
		t.Errorf("the small batches were out only after %d messages", servedBy)
	}
	// One at a time, too.
	push(t, q, batchOf(1, 1, 3))
	push(t, q, batchOf(2, 11, 3))
	var order []int64
	for range 6 {
		order = append(order, take(t, q, queue.Batch, 1)...)
	}
	if !slices.Equal(order, []int64{1, 11, 2, 12, 3, 13}) {
		t.Errorf("one at a time: %v", order)
	}
}

// TestManyCompanies: more companies have messages than a take returns, or looks at.
func TestManyCompanies(t *testing.T) {
	t.Parallel()
	q, _, _ := newQueue(t)
	var items []queue.Item
	for company := range int64(400) {
		items = append(items, batchOf(company+1, company*10+1, 2)...)
	}
	push(t, q, items)
	first := take(t, q, queue.Batch, 400)
	seen := map[int64]bool{}
	for _, message := range first {
		seen[message/10] = true
	}
	if len(first) != 400 || len(seen) != 400 {
		t.Errorf("400 taken: %d of %d companies", len(first), len(seen))
	}
	if rest := take(t, q, queue.Batch, 1000); len(rest) != 400 {
		t.Errorf("then %d", len(rest))
	}
	if got := take(t, q, queue.Batch, 1000); len(got) != 0 {
		t.Errorf("then %d", len(got))
	}
}

func TestBlockedTakeWakes(t *testing.T) {
	t.Parallel()
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		t.Run(lane.String(), func(t *testing.T) {
			q, client, _ := newQueue(t)
			const takers, each = 4, 25
			var wg sync.WaitGroup
			var mu sync.Mutex
			got := map[int64]int{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range takers {
				wg.Go(func() {
					for ctx.Err() == nil {
						messages, err := q.Take(ctx, carrier, lane, 3, time.Second)
						if err != nil && !errors.Is(err, context.Canceled) {
							t.Error(err)
							return
						}
						mu.Lock()
						for _, message := range messages {
							got[message]++
						}
						if len(got) == takers*each {
							cancel()
						}
						mu.Unlock()
					}
				})
			}
			waitFor(t, func() bool {
				clients, err := client.Info(t.Context(), "clients").Result()
				return err == nil && blocked(clients) >= takers
			})
			for n := range int64(takers * each) {
				item := batchOf(n%5+1, n+1, 1)[0]
				item.Lane = lane
				push(t, q, []queue.Item{item})
			}
			wg.Wait()
			if len(got) != takers*each {
				t.Errorf("%d of %d arrived", len(got), takers*each)
			}
			for id, times := range got {
				if times != 1 {
					t.Errorf("message %d was delivered %d times", id, times)
				}
			}
		})
	}
}

// TestTakeEnds: a waiting take ends with its context and has taken nothing; after a flush of its lane it gets the next
// message.
func TestTakeEnds(t *testing.T) {
	t.Parallel()
	q, client := queueOn(t, testenv.NewRedisServer(t).URL()) // its own server: other tests' waiters must not count
	waits := func(ctx context.Context) (messages chan []int64, errs chan error) {
		messages, errs = make(chan []int64, 1), make(chan error, 1)
		go func() {
			got, err := q.Take(ctx, carrier, queue.Single, 1, 10*time.Second)
			messages <- got
			errs <- err
		}()
		waitFor(t, func() bool {
			clients, err := client.Info(t.Context(), "clients").Result()
			return err == nil && blocked(clients) >= 1
		})
		return messages, errs
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, ended := waits(ctx)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("Take answered %v", err)
	}
	push(t, q, singles(1, 1))
	if got := take(t, q, queue.Single, 1); len(got) != 1 {
		t.Fatalf("took %v", got)
	}
	messages, ended := waits(t.Context())
	do(t, client, "FLUSHALL")
	push(t, q, singles(2, 1))
	if got, err := <-messages, <-ended; err != nil || !slices.Equal(got, []int64{2}) {
		t.Errorf("took %v, %v", got, err)
	}
}

// TestQueueAgainstModel drives a batch lane at random: nothing is lost or taken twice, and each company's order is
// kept.
func TestQueueAgainstModel(t *testing.T) {
	t.Parallel()
	client, prefix := testenv.Redis(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		q := queue.New(client, queue.Options{Prefix: fmt.Sprint(prefix, run)})
		waiting, total := map[int64][]int64{}, 0
		next := map[int64]int64{}
		rt.Repeat(map[string]func(*rapid.T){
			"push": func(rt *rapid.T) {
				company, n := rapid.Int64Range(1, 6).Draw(rt, "company"), rapid.IntRange(1, 8).Draw(rt, "n")
				for _, item := range batchOf(company, company*1_000_000+next[company], n) {
					push(t, q, []queue.Item{item})
					waiting[company] = append(waiting[company], item.MessageID)
				}
				next[company] += int64(n)
				total += n
			},
			"take": func(rt *rapid.T) {
				n := rapid.IntRange(1, 10).Draw(rt, "max")
				got := take(t, q, queue.Batch, n)
				if len(got) != min(n, total) {
					rt.Fatalf("took %d of %d, want at most %d", len(got), total, n)
				}
				for _, message := range got {
					company := message / 1_000_000
					if queued := waiting[company]; len(queued) == 0 || queued[0] != message {
						rt.Fatalf("company %d: got %d, waiting %v", company, message, queued)
					}
					waiting[company] = waiting[company][1:]
				}
				total -= len(got)
			},
		})
	})
}

func BenchmarkPushTake100(b *testing.B) {
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
				if got := take(b, q, lane, 100); len(got) != 100 {
					b.Fatalf("took %d", len(got))
				}
			}
			b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func waitFor(t testing.TB, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatal("waited 10 s in vain")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// blocked returns the server's number of blocked clients.
func blocked(info string) (n int) {
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "blocked_clients:%d", &n); err == nil {
			return n
		}
	}
	return 0
}
