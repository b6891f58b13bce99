package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"intumwa/internal/testenv"
	"intumwa/queue"
)

func TestReclaim(t *testing.T) {
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		t.Run(lane.String(), func(t *testing.T) {
			q, _, _ := newQueue(t)
			var items []queue.Item
			for company := range int64(100) { // more than one run of the script looks at
				items = append(items, batchOf(company+1, company*2+1, 2)...)
			}
			for i := range items {
				items[i].Lane = lane
			}
			push(t, q, items)
			dead := take(t, q, lane, "dead", 150)
			if got, err := q.Reclaim(t.Context(), carrier, lane, "heir", time.Hour, 1000); err != nil || len(got) != 0 {
				t.Fatalf("young entries were reclaimed: %d, %v", len(got), err)
			}
			part, err := q.Reclaim(t.Context(), carrier, lane, "heir", 0, 40)
			if err != nil || len(part) != 40 {
				t.Fatalf("reclaimed %d of 40, %v", len(part), err)
			}
			all, err := q.Reclaim(t.Context(), carrier, lane, "heir", 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			got, want := messages(all), messages(dead)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("reclaimed %d messages, want the %d that were taken", len(got), len(want))
			}
			if all[0].CompanyID == 0 || all[0].Carrier != carrier || all[0].Lane != lane {
				t.Errorf("reclaimed %+v", all[0])
			}
			done(t, q, lane, all)
			if waiting, pending, _ := depth(t, q, lane); waiting != 50 || pending != 0 {
				t.Errorf("depth %d %d", waiting, pending)
			}
		})
	}
}

func TestReclaimForgetsOnlyIdleConsumersWithoutPending(t *testing.T) {
	q, client, prefix := newQueue(t)
	push(t, q, singles(1, 3))
	take(t, q, queue.Single, "holds", 1)
	done(t, q, queue.Single, take(t, q, queue.Single, "idle", 1))
	consumers := func() (names []string) {
		t.Helper()
		if _, err := q.Reclaim(t.Context(), carrier, queue.Single, "me", time.Hour, 10); err != nil {
			t.Fatal(err)
		}
		infos, err := client.XInfoConsumers(t.Context(), prefix+":queue:{"+carrier+"}:single:stream:0", "dispatch").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			if info.Name != "me" {
				names = append(names, info.Name)
			}
		}
		return names
	}
	if got := consumers(); !slices.Equal(got, []string{"holds", "idle"}) {
		t.Errorf("young consumers: %q", got)
	}
	q.ForgetAfter(0)
	if got := consumers(); !slices.Equal(got, []string{"holds"}) {
		t.Errorf("old consumers: %q", got)
	}
	if got, err := q.Reclaim(t.Context(), carrier, queue.Single, "me", 0, 10); err != nil || len(got) != 1 {
		t.Errorf("what it held: %v, %v", got, err)
	}
}

func TestWatermarks(t *testing.T) {
	q, client, prefix := newQueue(t)
	ctx := t.Context()
	marks := func(lane queue.Lane) map[int64]queue.Watermark {
		t.Helper()
		marks, err := q.Watermarks(ctx, carrier, lane)
		if err != nil {
			t.Fatal(err)
		}
		return marks
	}
	now := func() time.Time {
		t.Helper()
		now, err := q.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	if got := marks(queue.Single); len(got) != 1 || !got[0].Empty {
		t.Errorf("an unused single lane: %+v", got)
	}
	if got := marks(queue.Batch); len(got) != 0 {
		t.Errorf("an unused batch lane: %+v", got)
	}

	push(t, q, batchOf(1, 1, 1))
	before := now() // message 1 was pushed by then, in the same millisecond or an earlier one
	tick(t, q)
	push(t, q, batchOf(1, 2, 1))
	push(t, q, batchOf(2, 3, 1))
	middle := now()
	one := marks(queue.Batch)[1]
	if one.Empty || before.Before(one.Delivered) {
		t.Errorf("all wait: %+v", one)
	}
	take(t, q, queue.Batch, "a", 1) // message 1
	got := marks(queue.Batch)
	one = got[1]
	if one.Empty || !before.Before(one.Delivered) || middle.Before(one.Delivered) {
		t.Errorf("message 1 is delivered, 2 waits: %+v", one)
	}
	take(t, q, queue.Batch, "a", 10)
	tick(t, q)
	for company, mark := range marks(queue.Batch) {
		if !mark.Empty {
			t.Errorf("all delivered: %d %+v", company, mark)
		}
	}

	// After a loss, what was pushed again hides nothing that is older.
	push(t, q, singles(1, 5))
	deleteAll(t, client, prefix)
	if mark := marks(queue.Single)[0]; !mark.Empty {
		t.Errorf("after the loss: %+v", mark)
	}
	tick(t, q)
	push(t, q, singles(6, 1))
	if mark := marks(queue.Single)[0]; mark.Empty || !middle.Before(mark.Delivered) {
		t.Errorf("messages 1 to 5 are not seen as lost: %+v", mark)
	}
}

// tick waits until the Redis clock shows another millisecond.
func tick(t testing.TB, q *queue.Queue) {
	start, err := q.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		now, err := q.Now(t.Context())
		return err == nil && now.UnixMilli() > start.UnixMilli()+1
	})
}

func TestEvictedRingIsMended(t *testing.T) {
	q, client, prefix := newQueue(t)
	push(t, q, batchOf(1, 1, 2))
	lane := prefix + ":queue:{" + carrier + "}:batch:"
	if err := client.Del(t.Context(), lane+"ring", lane+"bell").Err(); err != nil {
		t.Fatal(err)
	}
	if got := take(t, q, queue.Batch, "a", 5); len(got) != 0 {
		t.Fatalf("took %v without a ring", messages(got))
	}
	if _, err := q.Reclaim(t.Context(), carrier, queue.Batch, "a", time.Hour, 5); err != nil {
		t.Fatal(err)
	}
	if got, err := q.Take(t.Context(), carrier, queue.Batch, "a", 5, time.Second); err != nil || len(got) != 2 {
		t.Fatalf("took %v, %v", got, err)
	}
}

func TestDeletedGroupIsMadeAgainAtZero(t *testing.T) {
	q, client, prefix := newQueue(t)
	push(t, q, singles(1, 2))
	if err := client.XGroupDestroy(t.Context(), prefix+":queue:{"+carrier+"}:single:stream:0", "dispatch").Err(); err != nil {
		t.Fatal(err)
	}
	if got := take(t, q, queue.Single, "a", 5); !slices.Equal(messages(got), []int64{1, 2}) {
		t.Fatalf("took %v", messages(got))
	}
}

func TestForeignEntriesAndKeys(t *testing.T) {
	q, client, prefix := newQueue(t)
	push(t, q, batchOf(1, 1, 1))
	lane := prefix + ":queue:{" + carrier + "}:batch:"
	stream := lane + "stream:1"
	if err := client.Do(t.Context(), "XADD", stream, "*", "hello", "world").Err(); err != nil {
		t.Fatal(err)
	}
	push(t, q, batchOf(1, 2, 1))
	if err := client.Do(t.Context(), "ZADD", lane+"ring", "-1", "9").Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.Set(t.Context(), lane+"stream:9", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	// The key of another type comes first, is deleted, and holds nothing up.
	got := take(t, q, queue.Batch, "a", 5)
	if !slices.Equal(messages(got), []int64{1, 2}) {
		t.Errorf("took %v", messages(got))
	}
	if n, err := client.XLen(t.Context(), stream).Result(); err != nil || n != 2 {
		t.Errorf("the foreign entry is still there: %d, %v", n, err)
	}
	if n, err := client.Exists(t.Context(), lane+"stream:9").Result(); err != nil || n != 0 {
		t.Errorf("the key of another type is still there: %d, %v", n, err)
	}
}

func TestRestartedServer(t *testing.T) {
	server := testenv.NewRedisServer(t)
	q, client := queueOn(t, server.URL())
	push(t, q, singles(1, 1))
	took := take(t, q, queue.Single, "a", 1)
	done(t, q, queue.Single, took)

	// A restart that forgets everything, the scripts too.
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	push(t, q, slices.Concat(singles(2, 1), batchOf(1, 3, 1), batchOf(2, 4, 1)))
	if got := take(t, q, queue.Single, "a", 5); !slices.Equal(messages(got), []int64{2}) {
		t.Errorf("took %v", messages(got))
	}
	if got := take(t, q, queue.Batch, "a", 5); len(got) != 2 {
		t.Errorf("took %v", messages(got))
	}

	server.Stop()
	if err := q.Push(t.Context(), singles(9, 1)); err == nil {
		t.Error("pushed to a server that is away")
	}
	if _, err := q.Take(t.Context(), carrier, queue.Single, "a", 1, 0); err == nil {
		t.Error("took from a server that is away")
	}
	if _, err := q.CheckServer(t.Context()); err == nil {
		t.Error("checked a server that is away")
	}
}

func TestFullServer(t *testing.T) {
	server := testenv.NewRedisServer(t)
	q, client := queueOn(t, server.URL())
	push(t, q, slices.Concat(singles(1, 5), batchOf(1, 10, 5), batchOf(2, 20, 5)))
	memory := func(limit string) {
		t.Helper()
		if err := client.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
	}
	memory("1")
	if err := q.Push(t.Context(), singles(6, 1)); err == nil {
		t.Error("pushed to a full server")
	}
	taken := 0
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		for range 10 {
			entries := take(t, q, lane, "a", 2)
			taken += len(entries)
			done(t, q, lane, entries)
		}
	}
	if taken != 15 {
		t.Errorf("%d of 15 were taken from a full server", taken)
	}
	memory("0")
	push(t, q, singles(6, 1))
	if got := take(t, q, queue.Single, "a", 5); len(got) != 1 {
		t.Errorf("then took %v", messages(got))
	}
}

func TestFlushUnderABlockedTake(t *testing.T) {
	server := testenv.NewRedisServer(t)
	q, client := queueOn(t, server.URL())
	got := make(chan []queue.Entry, 1)
	go func() {
		entries, err := q.Take(t.Context(), carrier, queue.Single, "a", 1, 5*time.Second)
		if err != nil {
			t.Error(err)
		}
		got <- entries
	}()
	waitFor(t, func() bool {
		info, err := client.Info(t.Context(), "clients").Result()
		return err == nil && blocked(info) == 1
	})
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	push(t, q, singles(1, 1))
	if entries := <-got; len(entries) != 1 {
		t.Errorf("the waiter was not woken: %v", entries)
	}
}

func TestCheckServer(t *testing.T) {
	server := testenv.NewRedisServer(t)
	q, client := queueOn(t, server.URL())
	if err := client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	warnings, err := q.CheckServer(t.Context())
	if err != nil || len(warnings) == 0 || !strings.Contains(warnings[0], "allkeys-lru") {
		t.Errorf("%q, %v", warnings, err)
	}
	if err := q.Evicts(t.Context()); !errors.Is(err, queue.ErrEvicts) || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("it evicts: %v", err)
	}
	for setting, value := range map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes"} {
		if err := client.ConfigSet(t.Context(), setting, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if warnings, err := q.CheckServer(t.Context()); err != nil || len(warnings) != 0 {
		t.Errorf("%q, %v", warnings, err)
	}
	if err := q.Evicts(t.Context()); err != nil {
		t.Errorf("it evicts nothing: %v", err)
	}
	server.Stop()
	if err := q.Evicts(t.Context()); err != nil {
		t.Errorf("one that is away cannot be asked: %v", err)
	}
}

// TestQueueAgainstModel drives a batch lane at random: nothing is lost, nothing
// is delivered twice but by Reclaim, each company's order holds, depths agree.
func TestQueueAgainstModel(t *testing.T) {
	client, prefix := testenv.Redis(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		q := queue.New(client, queue.Options{Prefix: fmt.Sprint(prefix, run)})
		waiting := map[int64][]int64{}
		held := map[int64]queue.Entry{}
		next := int64(1)
		total := func() (n int) {
			for _, ids := range waiting {
				n += len(ids)
			}
			return n
		}
		rt.Repeat(map[string]func(*rapid.T){
			"push": func(rt *rapid.T) {
				company := rapid.Int64Range(1, 6).Draw(rt, "company")
				items := batchOf(company, next, rapid.IntRange(1, 8).Draw(rt, "n"))
				for _, item := range items {
					waiting[company] = append(waiting[company], item.MessageID)
				}
				next += int64(len(items))
				push(t, q, items)
			},
			"take": func(rt *rapid.T) {
				n := rapid.IntRange(1, 10).Draw(rt, "max")
				want := min(n, total())
				entries := take(t, q, queue.Batch, "a", n)
				if len(entries) != want {
					rt.Fatalf("took %d, want %d", len(entries), want)
				}
				for _, entry := range entries {
					queued := waiting[entry.CompanyID]
					if len(queued) == 0 || queued[0] != entry.MessageID {
						rt.Fatalf("company %d: got %d, waiting %v", entry.CompanyID, entry.MessageID, queued)
					}
					waiting[entry.CompanyID] = queued[1:]
					held[entry.MessageID] = entry
				}
			},
			"done": func(rt *rapid.T) {
				var entries []queue.Entry
				for id, entry := range held {
					if rapid.Bool().Draw(rt, "this") {
						entries = append(entries, entry)
						delete(held, id)
					}
				}
				done(t, q, queue.Batch, entries)
			},
			"reclaim": func(rt *rapid.T) {
				entries, err := q.Reclaim(t.Context(), carrier, queue.Batch, "heir", 0, 1000)
				if err != nil || len(entries) != len(held) {
					rt.Fatalf("reclaimed %d of %d, %v", len(entries), len(held), err)
				}
			},
			"": func(rt *rapid.T) {
				w, p, _ := depth(t, q, queue.Batch)
				if int(w) != total() || int(p) != len(held) {
					rt.Fatalf("depth %d %d, want %d %d", w, p, total(), len(held))
				}
				marks, err := q.Watermarks(t.Context(), carrier, queue.Batch)
				if err != nil {
					rt.Fatal(err)
				}
				for company := range int64(7) {
					if mark, known := marks[company]; (known && !mark.Empty) != (len(waiting[company]) > 0) {
						rt.Fatalf("company %d: %+v, waiting %v", company, mark, waiting[company])
					}
				}
			},
		})
	})
}
