package queue_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/internal/queue"
	"intumwa/internal/testenv"
)

// queueOn returns a queue on a test's own server.
func queueOn(t testing.TB, url string) (*queue.Queue, *redis.Client) {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return queue.New(client, queue.Options{Prefix: "test", Patience: 10 * time.Second}), client
}

func do(t testing.TB, client *redis.Client, args ...any) {
	t.Helper()
	if err := client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestRestartedServer: a server that lost everything, scripts included, works as before; an unreachable one is an
// error.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	server := testenv.NewRedisServer(t)
	q, client := queueOn(t, server.URL())
	push(t, q, singles(1, 1))
	take(t, q, queue.Single, 1)
	do(t, client, "FLUSHALL")
	do(t, client, "SCRIPT", "FLUSH")
	push(t, q, slices.Concat(singles(2, 1), batchOf(1, 3, 1), batchOf(2, 4, 1)))
	if got := take(t, q, queue.Single, 5); !slices.Equal(got, []int64{2}) {
		t.Errorf("took %v", got)
	}
	if got := take(t, q, queue.Batch, 5); len(got) != 2 {
		t.Errorf("took %v", got)
	}

	server.Stop()
	if err := q.Push(t.Context(), singles(9, 1)); err == nil {
		t.Error("pushed to a server that is away")
	}
	if _, err := q.Take(t.Context(), carrier, queue.Single, 1, 0); err == nil {
		t.Error("took from a server that is away")
	}
	if _, err := q.CheckServer(t.Context()); err == nil {
		t.Error("checked a server that is away")
	}
}

// TestFullServer: entries of a full server can be taken.
func TestFullServer(t *testing.T) {
	t.Parallel()
	server := testenv.NewRedisServer(t)
	q, client := queueOn(t, server.URL())
	push(t, q, slices.Concat(singles(1, 5), batchOf(1, 10, 5), batchOf(2, 20, 5)))
	do(t, client, "CONFIG", "SET", "maxmemory", "1")
	if err := q.Push(t.Context(), singles(6, 1)); err == nil {
		t.Error("pushed to a full server")
	}
	taken := 0
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		for range 10 {
			taken += len(take(t, q, lane, 2))
		}
	}
	if taken != 15 {
		t.Errorf("%d of 15 were taken from a full server", taken)
	}
	do(t, client, "CONFIG", "SET", "maxmemory", "0")
	push(t, q, singles(6, 1))
	if got := take(t, q, queue.Single, 5); len(got) != 1 {
		t.Errorf("then took %v", got)
	}
}

// TestUnwritable: Empty and Probe fail on a server that refuses writes; Probe also on one that loses them, and leaves
// no key for long.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	server := testenv.NewRedisServer(t)
	q, client := queueOn(t, server.URL())
	empty := func() error { return q.Empty(t.Context(), carrier, queue.Batch) }
	probe := func() error { return q.Probe(t.Context()) }
	for range 3 {
		if err := errors.Join(empty(), probe()); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range client.Keys(t.Context(), "*").Val() {
		if life := client.TTL(t.Context(), key).Val(); life <= 0 {
			t.Errorf("%s lives for %v", key, life)
		}
	}
	for name, fault := range map[string]struct {
		begin, end []any
		want       queue.Fault
	}{
		"full": {[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}, queue.Full},
		"no replicas": {[]any{"CONFIG", "SET", "min-replicas-to-write", "1"},
			[]any{"CONFIG", "SET", "min-replicas-to-write", "0"}, queue.Unwritable},
		"a replica": {[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}, queue.Unwritable},
		"no right": {[]any{"ACL", "SETUSER", "default", "-set"}, []any{"ACL", "SETUSER", "default", "+@all"},
			queue.Forbidden},
		"emptied": {[]any{"FLUSHALL"}, nil, queue.Lost},
	} {
		do(t, client, fault.begin...)
		if err := probe(); err == nil || queue.FaultOf(err) != fault.want {
			t.Errorf("%s: probe: %v", name, err)
		}
		if err := empty(); (err == nil) != (fault.want == queue.Lost) || err != nil && queue.FaultOf(err) != fault.want {
			t.Errorf("%s: empty: %v", name, err)
		}
		if fault.end != nil {
			do(t, client, fault.end...)
		}
		if err := errors.Join(probe(), probe(), empty()); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	server.Stop()
	if probe() == nil || empty() == nil {
		t.Error("a server that is away passes")
	}
}

// TestPatience: a server that hangs blocks no call for long.
func TestPatience(t *testing.T) {
	t.Parallel()
	server := testenv.NewRedisServer(t)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	defer client.Close()
	q := queue.New(client, queue.Options{Prefix: "test", Patience: 200 * time.Millisecond})
	do(t, client, "CLIENT", "PAUSE", "60000", "ALL")
	for name, call := range map[string]func() error{
		"push":   func() error { return q.Push(t.Context(), batchOf(1, 1, 1)) },
		"take":   func() error { _, err := q.Take(t.Context(), carrier, queue.Batch, 1, time.Second); return err },
		"oldest": func() error { _, err := q.Oldest(t.Context(), carrier, queue.Batch); return err },
		"empty":  func() error { return q.Empty(t.Context(), carrier, queue.Batch) },
		"probe":  func() error { return q.Probe(t.Context()) },
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

func TestCheckServer(t *testing.T) {
	t.Parallel()
	server := testenv.NewRedisServer(t)
	q, client := queueOn(t, server.URL())
	do(t, client, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	warnings, err := q.CheckServer(t.Context())
	if err != nil || len(warnings) == 0 || !strings.Contains(warnings[0], "allkeys-lru") {
		t.Errorf("%q, %v", warnings, err)
	}
	if err := q.Evicts(t.Context()); !errors.Is(err, queue.ErrEvicts) || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("it evicts: %v", err)
	}
	do(t, client, "CONFIG", "SET", "maxmemory-policy", "noeviction", "appendonly", "yes")
	if warnings, err := q.CheckServer(t.Context()); err != nil || len(warnings) != 0 {
		t.Errorf("%q, %v", warnings, err)
	}
	if err := q.Evicts(t.Context()); err != nil {
		t.Errorf("it evicts nothing: %v", err)
	}
	server.Stop()
	if err := q.Evicts(t.Context()); err != nil {
		t.Errorf("an unreachable one: %v", err)
	}
}
