package dispatcher_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"intumwa/dispatcher/setup"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/tools/carriersim"
)

// redisFaults has one fault of each kind: no connection, an error, no answer, vanished
// entries, keys of another type. queue.TestFaultOf and queue.TestSpoiledLane cover the
// others. Each returns a function that ends it.
var redisFaults = map[string]func(*redisWorld) (end func()){
	"killed": func(w *redisWorld) func() { w.server.Kill(); return w.server.Start },
	"OOM": func(w *redisWorld) func() {
		w.do("CONFIG", "SET", "maxmemory", "1")
		return func() { w.do("CONFIG", "SET", "maxmemory", "0") }
	},
	"no answer": func(w *redisWorld) func() {
		w.do("CLIENT", "PAUSE", "5000", "ALL") // UNPAUSE would wait too
		return func() {}
	},
	"FLUSHALL again and again": func(w *redisWorld) func() { return w.again("FLUSHALL") },
	"streams overwritten again and again": func(w *redisWorld) func() {
		return w.again("MSET", w.stream(queue.Single, 0), "x", w.stream(queue.Batch, 1), "x")
	},
}

// TestRedisRefuses: a Redis that refuses commands, in each way and again and again, delays no message, and is used
// again within five seconds once it is well.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	w := newRedisWorld(t)
	mno := w.carrier(carriersim.Options{})
	w.start(mno.mno(func(c *setup.Carrier) { c.Links[0].TPS = 1000 }))
	all := w.post(1)
	w.await("sent", 20*time.Second, all...)
	for _, c := range []struct {
		reply      string
		begin, end [][]any
	}{
		{"READONLY", [][]any{{"REPLICAOF", "127.0.0.1", "1"}}, [][]any{{"REPLICAOF", "NO", "ONE"}}},
		{"NOREPLICAS", [][]any{{"CONFIG", "SET", "min-replicas-to-write", "1"}},
			[][]any{{"CONFIG", "SET", "min-replicas-to-write", "0"}}},
		{"MASTERDOWN", [][]any{{"CONFIG", "SET", "replica-serve-stale-data", "no"}, {"REPLICAOF", "127.0.0.1", "1"}},
			[][]any{{"REPLICAOF", "NO", "ONE"}, {"CONFIG", "SET", "replica-serve-stale-data", "yes"}}},
		{"READONLY again", [][]any{{"REPLICAOF", "127.0.0.1", "1"}}, [][]any{{"REPLICAOF", "NO", "ONE"}}},
		{"NOREPLICAS again", [][]any{{"CONFIG", "SET", "min-replicas-to-write", "1"}},
			[][]any{{"CONFIG", "SET", "min-replicas-to-write", "0"}}},
	} {
		for _, command := range c.begin {
			w.do(command...)
		}
		faults := w.metric("intumwa_queue_faults_total")
		more := w.post(2)
		w.await("sent", 10*time.Second, more...)
		w.until(c.reply+" is noticed", func() bool { return w.metric("intumwa_queue_faults_total") > faults })
		for _, command := range c.end {
			w.do(command...)
		}
		w.eventually(5*time.Second, func() bool { return w.metric("intumwa_queue_usable") == 2 },
			func() string { return c.reply + ": it is used again" })
		all = append(all, more...)
	}
	w.await("sent", 20*time.Second, all...)
	w.clean(mno)
}

// TestRedisFails: with any fault of Redis, accepted messages, single or in a batch,
// reach their carrier once. When Redis works again it is used again.
func TestRedisFails(t *testing.T) {
	t.Parallel()
	for name, begin := range redisFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRedisWorld(t)
			mno := w.carrier(carriersim.Options{})
			w.start(mno.mno(func(c *setup.Carrier) { c.Links[0].TPS = 1000 }))
			var all []int64
			post := func(n int) {
				all = append(all, w.post(n)...)
				w.until("the carrier has them", func() bool { return int(mno.Stats().Accepted) >= len(all) })
			}
			post(3)
			w.until("the feeders of both lanes wait at their bells", func() bool { return w.blocked() >= 2 })

			end := begin(w)
			for range 4 {
				post(2)
			}
			w.eventually(30*time.Second, func() bool { // FLUSHALL hits no entry that a waiting feeder takes at once
				if w.metric("intumwa_queue_faults_total") > 0 {
					return true
				}
				post(2)
				return false
			}, func() string { return "a fault is counted" })
			end()
			w.eventually(30*time.Second, func() bool {
				if w.metric("intumwa_queue_usable") < 2 {
					return false
				}
				past := w.metric("intumwa_queue_bypassed_total")
				post(1)
				return w.metric("intumwa_queue_bypassed_total") == past
			}, func() string { return "messages go by Redis again" })
			w.await("sent", 20*time.Second, all...)
			w.clean(mno)
			w.settledAll()
		})
	}
}

// redisWorld is a world with its own Redis.
type redisWorld struct {
	*world
	server *testenv.Server
	client *redis.Client
}

func newRedisWorld(t *testing.T) *redisWorld {
	t.Helper()
	server := testenv.NewRedisServer(t)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	w := &redisWorld{server: server, client: redis.NewClient(options)}
	t.Cleanup(func() { _ = w.client.Close() })
	w.world = newWorldWith(t, options, "test")
	return w
}

// post accepts n single messages and n in a batch. The queue may refuse them after their
// commit; the customer does not notice.
func (w *redisWorld) post(n int) (ids []int64) {
	w.Helper()
	batch := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: n,
		Segments: n}
	var notes []note
	for range n {
		notes = append(notes, note{to: w.number("00"), company: 1}, note{to: w.number("00"), company: 1, batch: batch})
	}
	ids, items := w.insert(notes...)
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
	go func() {
		defer cancel()
		_ = w.queue.Push(ctx, items)
	}()
	return ids
}

func (w *redisWorld) do(args ...any) {
	w.Helper()
	if err := w.client.Do(w.Context(), args...).Err(); err != nil {
		w.Fatalf("%v: %v", args, err)
	}
}

// blocked is the number of blocked Redis clients.
func (w *redisWorld) blocked() (n int) {
	w.Helper()
	info, err := w.client.Info(w.Context(), "clients").Result()
	if err != nil {
		w.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "blocked_clients:%d", &n); err == nil {
			return n
		}
	}
	return 0
}

// stream is the key of a company's entries in a lane. Single messages of all companies
// share number 0.
func (w *redisWorld) stream(lane queue.Lane, company int) string {
	return fmt.Sprintf("test:queue:{lumitel}:%s:stream:%d", lane, company)
}

// again repeats a command without pause until the returned function is called.
func (w *redisWorld) again(args ...any) func() {
	var doing sync.WaitGroup
	var ended atomic.Bool
	doing.Go(func() {
		for !ended.Load() {
			_ = w.client.Do(context.Background(), args...).Err()
		}
	})
	end := func() { ended.Store(true); doing.Wait() }
	w.Cleanup(end)
	return end
}
