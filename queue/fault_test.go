package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/internal/testenv"
	"intumwa/queue"
)

// TestFaultOf: what servers and networks say.
func TestFaultOf(t *testing.T) {
	for text, want := range map[string]queue.Fault{
		"OOM command not allowed when used memory > 'maxmemory'. script: f6, on @user_script:51.":      queue.Full,
		"ERR Error running script (call to f_1): @user_script:9: -OOM command not allowed":             queue.Full,
		"NOREPLICAS Not enough good replicas to write.":                                                queue.Unwritable,
		"READONLY You can't write against a read only replica.":                                        queue.Unwritable,
		"MISCONF Redis is configured to save RDB snapshots":                                            queue.Unwritable,
		"LOADING Redis is loading the dataset in memory":                                               queue.Loading,
		"BUSY Redis is busy running a script.":                                                         queue.Loading,
		"CLUSTERDOWN Hash slot not served":                                                             queue.Loading,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                      queue.Loading,
		"ERR Script attempted to access a non local key in a cluster node script: f6":                  queue.Loading,
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)": queue.Unwritable,
		"redis: cluster has no nodes":                                                                  queue.Unreachable,
		"NOPERM this user has no permissions to run the 'xadd' command":                                queue.Forbidden,
		"WRONGPASS invalid username-password pair":                                                     queue.Forbidden,
		"NOAUTH Authentication required.":                                                              queue.Forbidden,
		"ERR Error running script: @user_script:3: -WRONGTYPE Operation against a key":                 queue.WrongType,
		"ERR The stream has exhausted the last possible ID, unable to add more items":                  queue.Garbled,
		"redis: can't parse reply=\"HTTP/1.1 400 Bad Request\" reading \"HTTP/1.1 400 Bad Request\"":   queue.Garbled,
		"ERR max number of clients reached":                                                            queue.Unreachable,
		"EOF":                                                                                          queue.Unreachable,
		"redis: connection pool timeout":                                                               queue.Slow,
	} {
		if got := queue.FaultOf(fmt.Errorf("pushing: %w", errors.New(text))); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	for err, want := range map[error]queue.Fault{
		context.DeadlineExceeded: queue.Slow,
		&net.OpError{Op: "dial", Err: errors.New("connection refused")}: queue.Unreachable,
		&queue.FaultError{Fault: queue.Lost, Text: "gone"}:              queue.Lost,
	} {
		if got := queue.FaultOf(fmt.Errorf("pushing: %w", err)); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
	for _, fault := range queue.Faults {
		if queue.FaultOf(&queue.FaultError{Fault: fault}) != fault {
			t.Error(fault)
		}
	}
}

// TestOverwrittenKeys: whichever of a lane's keys holds another type, every call
// comes through, and the log names the key.
func TestOverwrittenKeys(t *testing.T) {
	calls := map[string]func(*queue.Queue, *testing.T) error{
		"push": func(q *queue.Queue, t *testing.T) error { return q.Push(t.Context(), batchOf(1, 9, 1)) },
		"take": func(q *queue.Queue, t *testing.T) error {
			_, err := q.Take(t.Context(), carrier, queue.Batch, "a", 5, 0)
			return err
		},
		"wait": func(q *queue.Queue, t *testing.T) error {
			_, err := q.Wait(t.Context(), carrier, time.Second, queue.Single, queue.Batch)
			return err
		},
		"watermarks": func(q *queue.Queue, t *testing.T) error {
			_, err := q.Watermarks(t.Context(), carrier, queue.Batch)
			return err
		},
		"done": func(q *queue.Queue, t *testing.T) error {
			return q.Done(t.Context(), carrier, queue.Batch, "1/1-1")
		},
		"reclaim": func(q *queue.Queue, t *testing.T) error {
			_, err := q.Reclaim(t.Context(), carrier, queue.Batch, "heir", 0, 5)
			return err
		},
		"reset": func(q *queue.Queue, t *testing.T) error { return q.Reset(t.Context(), carrier, queue.Batch) },
	}
	for _, key := range []string{"ring", "streams", "bell", "stream:1"} {
		for name, call := range calls {
			t.Run(key+" "+name, func(t *testing.T) {
				t.Parallel()
				client, prefix := testenv.Redis(t)
				var log bytes.Buffer
				q := queue.New(client, queue.Options{Prefix: prefix, Log: slog.New(slog.NewTextHandler(&log, nil))})
				push(t, q, batchOf(1, 1, 2))
				broken := prefix + ":queue:{" + carrier + "}:batch:" + key
				if err := client.Set(t.Context(), broken, "x", 0).Err(); err != nil {
					t.Fatal(err)
				}
				if err := call(q, t); err != nil {
					t.Errorf("%v", err)
				}
				if is := client.Type(t.Context(), broken).Val(); is == "string" && log.Len() > 0 {
					t.Errorf("logged, and not deleted: %s", log.String())
				}
				if strings.Contains(log.String(), "key=") && !strings.Contains(log.String(), broken) {
					t.Errorf("the log names another key: %s", log.String())
				}
				// Whatever was lost is pushed again by the dispatcher, and arrives.
				push(t, q, batchOf(1, 1, 2))
				if got, err := q.Take(t.Context(), carrier, queue.Batch, "a", 50, 0); err != nil || !slices.Contains(messages(got), 2) {
					t.Errorf("took %v, %v", messages(got), err)
				}
			})
		}
	}
}

// TestRepairIsBounded: against one who overwrites a key without end the queue
// does not fight; the error says what it is.
func TestRepairIsBounded(t *testing.T) {
	q, client, prefix := newQueue(t)
	failed := 0
	for range 20 {
		if err := client.Set(t.Context(), prefix+":queue:{"+carrier+"}:single:stream:0", "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := q.Push(t.Context(), singles(1, 1)); err != nil {
			failed++
			if fault := queue.FaultOf(err); fault != queue.WrongType {
				t.Errorf("%s: %v", fault, err)
			}
		}
	}
	if failed == 0 {
		t.Error("it was repaired every time")
	}
}

// TestForeignMembers: what is no company's in a lane's own keys is no obstacle,
// and neither is a turn beyond which one more is no more.
func TestForeignMembers(t *testing.T) {
	q, client, prefix := newQueue(t)
	lane := prefix + ":queue:{" + carrier + "}:batch:"
	push(t, q, slices.Concat(batchOf(1, 1, 3), batchOf(2, 11, 3)))
	for _, command := range [][]any{
		{"ZADD", lane + "ring", "inf", "nobody"}, {"ZADD", lane + "ring", "1e300", "3"}, {"SADD", lane + "streams", "nobody", "4"},
		{"XADD", lane + "stream:1", "*", "m", "x", "c", "1"}, {"XADD", lane + "stream:1", "*", "m", "5", "c", strings.Repeat("9", 30)},
	} {
		if err := client.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Watermarks(t.Context(), carrier, queue.Batch); err != nil {
		t.Error(err)
	}
	var order []int64
	for range 20 {
		order = append(order, messages(take(t, q, queue.Batch, "a", 1))...)
	}
	if !slices.Equal(order, []int64{1, 11, 2, 12, 3, 13}) {
		t.Errorf("took %v", order)
	}
	if _, err := q.Reclaim(t.Context(), carrier, queue.Batch, "heir", 0, 50); err != nil {
		t.Error(err)
	}
}

// TestTrimmedStream: entries that were delivered and are gone from the stream do
// not hide one that waits.
func TestTrimmedStream(t *testing.T) {
	q, client, prefix := newQueue(t)
	lane := prefix + ":queue:{" + carrier + "}:batch:"
	push(t, q, batchOf(1, 1, 5))
	take(t, q, queue.Batch, "dead", 5)
	if err := client.XTrimMaxLen(t.Context(), lane+"stream:1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	push(t, q, batchOf(1, 6, 1))
	if waiting, _, _ := depth(t, q, queue.Batch); waiting < 0 {
		t.Errorf("%d wait", waiting)
	}
	if err := client.Del(t.Context(), lane+"ring").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Reclaim(t.Context(), carrier, queue.Batch, "heir", time.Hour, 5); err != nil {
		t.Fatal(err)
	}
	if got := take(t, q, queue.Batch, "a", 5); !slices.Equal(messages(got), []int64{6}) {
		t.Errorf("took %v", messages(got))
	}
}

// TestGroupOfAnother: a stream that has somebody else's group and not ours.
func TestGroupOfAnother(t *testing.T) {
	q, client, prefix := newQueue(t)
	stream := prefix + ":queue:{" + carrier + "}:single:stream:0"
	push(t, q, singles(1, 2))
	if err := client.XGroupCreate(t.Context(), stream, "theirs", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.XGroupDestroy(t.Context(), stream, "dispatch").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Reclaim(t.Context(), carrier, queue.Single, "heir", time.Hour, 5); err != nil {
		t.Error(err)
	}
	if got := take(t, q, queue.Single, "a", 5); len(got) != 2 {
		t.Errorf("took %v", messages(got))
	}
}

// TestReset: a lane that is emptied holds nothing that stood in its way.
func TestReset(t *testing.T) {
	q, client, prefix := newQueue(t)
	stream := prefix + ":queue:{" + carrier + "}:batch:stream:1"
	if err := client.Do(t.Context(), "XADD", stream, "18446744073709551615-18446744073709551615", "m", "1", "c", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := q.Push(t.Context(), batchOf(1, 1, 1)); err == nil {
		t.Fatal("pushed to a stream whose ids are used up")
	}
	if err := q.Reset(t.Context(), carrier, queue.Batch); err != nil {
		t.Fatal(err)
	}
	push(t, q, batchOf(1, 1, 1))
	if got := take(t, q, queue.Batch, "a", 5); !slices.Equal(messages(got), []int64{1}) {
		t.Errorf("took %v", messages(got))
	}
}

// TestQuietBesideOthers: who ends waits for its own calls, not for those that another dispatcher goes on making.
func TestQuietBesideOthers(t *testing.T) {
	q, _ := queueOn(t, testenv.NewRedisServer(t).URL())
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	listen := func() {
		if _, err := q.Wait(ctx, carrier, time.Second, queue.Single); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	others.Go(listen)
	others.Go(func() { // never is there a moment without one that listens
		next := time.NewTicker(200 * time.Millisecond)
		defer next.Stop()
		for {
			select {
			case <-next.C:
				others.Go(listen)
			case <-ctx.Done():
				return
			}
		}
	})
	done := make(chan struct{})
	go func() { defer close(done); q.Quiet() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("it waits for the others' calls")
	}
	cancel()
	others.Wait()
	q.Quiet()
}

// TestProbesAtOnce: several dispatchers of one process probe by one queue.
func TestProbesAtOnce(t *testing.T) {
	q, _ := queueOn(t, testenv.NewRedisServer(t).URL())
	var probes sync.WaitGroup
	for range 4 {
		probes.Go(func() {
			for range 10 {
				if err := q.Probe(t.Context(), carrier); err != nil {
					t.Error(err)
				}
			}
		})
	}
	probes.Wait()
}

// TestProbe: it passes on a server that is well, leaves nothing behind that
// stays, and fails on one that refuses or loses what is written.
func TestProbe(t *testing.T) {
	server := testenv.NewRedisServer(t)
	q, client := queueOn(t, server.URL())
	probe := func() error { return q.Probe(t.Context(), carrier) }
	for range 5 {
		if err := probe(); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatal(keys, err)
	}
	for _, key := range keys {
		if life := client.TTL(t.Context(), key).Val(); life <= 0 || !strings.HasPrefix(key, "test:probe:") || !strings.Contains(key, "{"+carrier+"}") {
			t.Errorf("%s lives for %v", key, life)
		}
	}
	for name, fault := range map[string]struct {
		begin, end []any
		want       queue.Fault
	}{
		"full":        {[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}, queue.Full},
		"no replicas": {[]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"}, queue.Unwritable},
		"a replica":   {[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}, queue.Unwritable},
		"no right":    {[]any{"ACL", "SETUSER", "default", "-xadd"}, []any{"ACL", "SETUSER", "default", "+@all"}, queue.Forbidden},
		"emptied":     {[]any{"FLUSHALL"}, nil, queue.Lost},
	} {
		if err := client.Do(t.Context(), fault.begin...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := probe(); err == nil || queue.FaultOf(err) != fault.want {
			t.Errorf("%s: %v", name, err)
		}
		if fault.end != nil {
			if err := client.Do(t.Context(), fault.end...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := probe(); err != nil {
				t.Errorf("after %s: %v", name, err)
			}
		}
	}
	server.Stop()
	if err := probe(); err == nil {
		t.Error("a server that is away")
	}
}

// TestPatience: a server that stands still holds no call for long, and no waiter.
func TestPatience(t *testing.T) {
	server := testenv.NewRedisServer(t)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	defer client.Close()
	push(t, queue.New(client, queue.Options{Prefix: "test", Patience: time.Minute}), batchOf(1, 1, 1))
	q := queue.New(client, queue.Options{Prefix: "test", Patience: 200 * time.Millisecond})
	if err := client.Do(t.Context(), "CLIENT", "PAUSE", "60000", "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"push":       func() error { return q.Push(t.Context(), batchOf(1, 1, 1)) },
		"take":       func() error { _, err := q.Take(t.Context(), carrier, queue.Batch, "a", 1, time.Second); return err },
		"wait":       func() error { _, err := q.Wait(t.Context(), carrier, time.Second, queue.Batch); return err },
		"watermarks": func() error { _, err := q.Watermarks(t.Context(), carrier, queue.Batch); return err },
		"done":       func() error { return q.Done(t.Context(), carrier, queue.Batch, "1/1-1") },
		"reclaim":    func() error { _, err := q.Reclaim(t.Context(), carrier, queue.Batch, "a", 0, 1); return err },
		"now":        func() error { _, err := q.Now(t.Context()); return err },
		"reset":      func() error { return q.Reset(t.Context(), carrier, queue.Batch) },
		"probe":      func() error { return q.Probe(t.Context(), carrier) },
	} {
		start := time.Now()
		if err := call(); err == nil || queue.FaultOf(err) != queue.Slow {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}
