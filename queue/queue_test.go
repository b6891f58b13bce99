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

	"intumwa/internal/testenv"
	"intumwa/queue"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const carrier = "lumitel"

func newQueue(t testing.TB) (*queue.Queue, *redis.Client, string) {
	client, prefix := testenv.Redis(t)
	return queue.New(client, queue.Options{Prefix: prefix}), client, prefix
}

// batchOf makes n batch items of a company, with message ids from first on.
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

func take(t testing.TB, q *queue.Queue, lane queue.Lane, consumer string, max int) []queue.Entry {
	t.Helper()
	entries, err := q.Take(t.Context(), carrier, lane, consumer, max, 0)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func done(t testing.TB, q *queue.Queue, lane queue.Lane, entries []queue.Entry) {
	t.Helper()
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = entry.ID
	}
	if err := q.Done(t.Context(), carrier, lane, ids...); err != nil {
		t.Fatal(err)
	}
}

func depth(t testing.TB, q *queue.Queue, lane queue.Lane) (waiting, pending int64, oldest time.Time) {
	t.Helper()
	waiting, pending, oldest, err := q.Depth(t.Context(), carrier, lane)
	if err != nil {
		t.Fatal(err)
	}
	return waiting, pending, oldest
}

func messages(entries []queue.Entry) []int64 {
	ids := make([]int64, len(entries))
	for i, entry := range entries {
		ids[i] = entry.MessageID
	}
	return ids
}

func TestPushTakeDone(t *testing.T) {
	q, client, prefix := newQueue(t)
	push(t, q, slices.Concat(singles(1, 3), batchOf(7, 10, 2), batchOf(8, 20, 1)))

	got := take(t, q, queue.Single, "a", 10)
	if !slices.Equal(messages(got), []int64{1, 2, 3}) {
		t.Fatalf("took %v", messages(got))
	}
	if want := singles(1, 1)[0]; got[0].Item != want {
		t.Errorf("took %+v, want %+v", got[0].Item, want)
	}
	if again := take(t, q, queue.Single, "b", 10); len(again) != 0 {
		t.Errorf("delivered twice: %v", messages(again))
	}
	if waiting, pending, oldest := depth(t, q, queue.Single); waiting != 0 || pending != 3 || !oldest.IsZero() {
		t.Errorf("depth %d %d %v", waiting, pending, oldest)
	}
	waiting, pending, oldest := depth(t, q, queue.Batch)
	now, err := q.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if waiting != 3 || pending != 0 || oldest.IsZero() || oldest.After(now) || now.Sub(oldest) > time.Minute {
		t.Errorf("depth %d %d %v", waiting, pending, oldest)
	}
	done(t, q, queue.Single, got)
	done(t, q, queue.Single, got) // again: no error
	done(t, q, queue.Batch, take(t, q, queue.Batch, "a", 10))
	if waiting, pending, _ := depth(t, q, queue.Batch); waiting != 0 || pending != 0 {
		t.Errorf("depth %d %d after Done", waiting, pending)
	}

	// All that is left is the single lane's empty stream and its name.
	keys, err := client.Keys(t.Context(), prefix+":queue:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	lane := prefix + ":queue:{" + carrier + "}:single:"
	if !slices.Equal(keys, []string{lane + "stream:0", lane + "streams"}) {
		t.Errorf("keys left: %q", keys)
	}
}

func TestNothingToDo(t *testing.T) {
	q, _, _ := newQueue(t)
	if err := q.Push(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := q.Done(t.Context(), carrier, queue.Single); err != nil {
		t.Error(err)
	}
	if err := q.Done(t.Context(), carrier, queue.Batch, "5/1-1"); err != nil {
		t.Error(err)
	}
	if err := q.Done(t.Context(), carrier, queue.Batch, "1-1"); err == nil {
		t.Error("an id without a stream was accepted")
	}
	if got, err := q.Take(t.Context(), carrier, queue.Single, "a", 0, time.Second); err != nil || got != nil {
		t.Error(got, err)
	}
	if got, err := q.Reclaim(t.Context(), carrier, queue.Single, "a", 0, 10); err != nil || got != nil {
		t.Error(got, err)
	}
}

// TestCompaniesTakeTurns: one company's many do not hold up another's few, and
// each company's own order is kept.
func TestCompaniesTakeTurns(t *testing.T) {
	q, _, _ := newQueue(t)
	const many, few = 3000, 50
	push(t, q, batchOf(1, 1, many))
	push(t, q, batchOf(2, 100_001, few))
	push(t, q, batchOf(3, 200_001, few))
	last := map[int64]int64{}
	taken := map[int64]int{}
	servedBy := 0
	for taken[1]+taken[2]+taken[3] < many+2*few {
		entries := take(t, q, queue.Batch, "a", 10)
		if len(entries) == 0 {
			t.Fatalf("nothing more after %v", taken)
		}
		for _, entry := range entries {
			if entry.MessageID <= last[entry.CompanyID] {
				t.Fatalf("company %d: %d after %d", entry.CompanyID, entry.MessageID, last[entry.CompanyID])
			}
			last[entry.CompanyID] = entry.MessageID
			taken[entry.CompanyID]++
		}
		if servedBy == 0 && taken[2] == few && taken[3] == few {
			servedBy = taken[1] + 2*few
		}
		done(t, q, queue.Batch, entries)
	}
	if servedBy > 4*few {
		t.Errorf("the small batches were out only after %d messages", servedBy)
	}
	// One at a time, too.
	push(t, q, batchOf(1, 1, 3))
	push(t, q, batchOf(2, 11, 3))
	var order []int64
	for range 6 {
		order = append(order, messages(take(t, q, queue.Batch, "a", 1))...)
	}
	if !slices.Equal(order, []int64{1, 11, 2, 12, 3, 13}) {
		t.Errorf("one at a time: %v", order)
	}
}

func TestManyCompanies(t *testing.T) {
	q, _, _ := newQueue(t)
	var items []queue.Item
	for company := range int64(400) {
		items = append(items, batchOf(company+1, company*10, 2)...)
	}
	push(t, q, items)
	if waiting, _, _ := depth(t, q, queue.Batch); waiting != 800 {
		t.Fatalf("%d waiting", waiting)
	}
	first := take(t, q, queue.Batch, "a", 400)
	seen := map[int64]bool{}
	for _, entry := range first {
		seen[entry.CompanyID] = true
	}
	if len(first) != 400 || len(seen) != 400 {
		t.Errorf("400 taken: %d of %d companies", len(first), len(seen))
	}
	if rest := take(t, q, queue.Batch, "a", 1000); len(rest) != 400 {
		t.Errorf("then %d", len(rest))
	}
	if got := take(t, q, queue.Batch, "a", 1000); len(got) != 0 {
		t.Errorf("then %d", len(got))
	}
}

func TestBlockedTakeWakes(t *testing.T) {
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		t.Run(lane.String(), func(t *testing.T) {
			q, client, _ := newQueue(t)
			const takers, each = 4, 25
			var wg sync.WaitGroup
			var mu sync.Mutex
			got := map[int64]int{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for i := range takers {
				wg.Go(func() {
					for ctx.Err() == nil {
						entries, err := q.Take(ctx, carrier, lane, fmt.Sprint("c", i), 3, time.Second)
						if err != nil && !errors.Is(err, context.Canceled) {
							t.Error(err)
							return
						}
						mu.Lock()
						for _, entry := range entries {
							got[entry.MessageID]++
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

func TestTakeEndsWithItsContext(t *testing.T) {
	q, client := queueOn(t, testenv.NewRedisServer(t).URL()) // of its own: others' waiters are not counted
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan error, 1)
	go func() {
		_, err := q.Take(ctx, carrier, queue.Single, "a", 1, time.Second)
		finished <- err
	}()
	waitFor(t, func() bool {
		clients, err := client.Info(t.Context(), "clients").Result()
		return err == nil && blocked(clients) >= 1
	})
	cancel()
	push(t, q, singles(1, 1)) // comes when the waiter is no longer interested
	if err := <-finished; !errors.Is(err, context.Canceled) {
		t.Fatalf("Take answered %v", err)
	}
	// The entry is neither lost nor in the hands of the one who left, and the
	// next taker does not wait for it.
	if got, err := q.Take(t.Context(), carrier, queue.Single, "b", 1, time.Second); err != nil || len(got) != 1 {
		t.Fatalf("took %v, %v", got, err)
	}
}

func TestWaitHearsEveryLane(t *testing.T) {
	q, _, _ := newQueue(t)
	if rung, err := q.Wait(t.Context(), carrier, time.Millisecond, queue.Single, queue.Batch); err != nil || rung {
		t.Fatalf("a quiet carrier: %v, %v", rung, err)
	}
	for _, items := range [][]queue.Item{singles(1, 1), batchOf(3, 2, 1)} {
		push(t, q, items)
		if rung, err := q.Wait(t.Context(), carrier, time.Second, queue.Single, queue.Batch); err != nil || !rung {
			t.Fatalf("%v, %v", rung, err)
		}
		done(t, q, items[0].Lane, take(t, q, items[0].Lane, "a", 1))
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

// blocked reads how many clients of the server are blocked.
func blocked(info string) (n int) {
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "blocked_clients:%d", &n); err == nil {
			return n
		}
	}
	return 0
}
