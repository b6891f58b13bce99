package throttle_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patient is a long timeout of Redis: these tests must not fall back on a busy machine.
const patient = 10 * time.Second

func TestWindowOverAllInstances(t *testing.T) {
	client, prefix := testenv.Redis(t)
	const limit = 50
	options := throttle.Options{Prefix: prefix, Limit: limit, Window: time.Minute, Timeout: patient}
	instances := []*throttle.Throttle{throttle.New(client, options), throttle.New(client, options)}
	var wg sync.WaitGroup
	var allowed, refused atomic.Int64
	for _, instance := range instances {
		for range limit {
			wg.Go(func() {
				if instance.Allow(t.Context(), 7).Allowed {
					allowed.Add(1)
				} else {
					refused.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if allowed.Load() != limit || refused.Load() != limit {
		t.Errorf("%d passed, %d were refused", allowed.Load(), refused.Load())
	}
	if count, err := client.Get(t.Context(), prefix+":throttle:{7}").Int(); err != nil || count != limit {
		t.Errorf("counted %d, %v: refused requests are not counted", count, err)
	}
	if other := instances[0].Allow(t.Context(), 8); !other.Allowed || other.Remaining != limit-1 {
		t.Errorf("another user: %+v", other)
	}
}

func TestDecision(t *testing.T) {
	client, prefix := testenv.Redis(t)
	th := throttle.New(client, throttle.Options{Prefix: prefix, Limit: 3, Window: time.Minute, Timeout: patient})
	var first throttle.Decision
	for i, want := range []throttle.Decision{
		{Allowed: true, Limit: 3, Remaining: 2}, {Allowed: true, Limit: 3, Remaining: 1},
		{Allowed: true, Limit: 3}, {Limit: 3}, {Limit: 3},
	} {
		got := th.Allow(t.Context(), 1)
		if i == 0 {
			first = got
		}
		if until := time.Until(got.ResetAt); until > time.Minute || until < 30*time.Second {
			t.Errorf("request %d: the window ends in %v", i+1, until)
		}
		if moved := got.ResetAt.Sub(first.ResetAt).Abs(); moved > 20*time.Second {
			t.Errorf("request %d moved the window's end by %v", i+1, moved)
		}
		got.ResetAt = time.Time{}
		if got != want {
			t.Errorf("request %d: %+v, want %+v", i+1, got, want)
		}
	}
	// A counter that lost its expiry does not refuse its user permanently.
	if err := client.Persist(t.Context(), prefix+":throttle:{1}").Err(); err != nil {
		t.Fatal(err)
	}
	th.Allow(t.Context(), 1)
	if left, err := client.PTTL(t.Context(), prefix+":throttle:{1}").Result(); err != nil || left <= 0 {
		t.Errorf("the window has no end: %v, %v", left, err)
	}
	// After the window, the next request opens another.
	if err := client.PExpire(t.Context(), prefix+":throttle:{1}", time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patient); ; {
		if got := th.Allow(t.Context(), 1); got.Allowed {
			if got.Remaining != 2 {
				t.Errorf("a new window: %+v", got)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the window does not end")
		}
	}
}

// TestGiveBack: an undone request is not counted, with and without Redis.
func TestGiveBack(t *testing.T) {
	client, prefix := testenv.Redis(t)
	options := throttle.Options{Prefix: prefix, Limit: 2, Window: time.Minute, Timeout: patient}
	away := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = away.Close() })
	for name, th := range map[string]*throttle.Throttle{"redis": throttle.New(client, options),
		"local": throttle.New(away, options)} {
		th.GiveBack(t.Context(), 1) // nothing was counted
		for range 5 {
			if !th.Allow(t.Context(), 1).Allowed {
				t.Fatalf("%s: refused", name)
			}
			th.GiveBack(t.Context(), 1)
		}
		for i, want := range []bool{true, true, false} {
			if got := th.Allow(t.Context(), 1).Allowed; got != want {
				t.Errorf("%s, %d: %v", name, i, got)
			}
		}
	}
}

func TestRedisAway(t *testing.T) {
	server := testenv.NewRedisServer(t)
	target, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(target)
	t.Cleanup(func() { _ = client.Close() })
	registry := prometheus.NewRegistry()
	const limit = 20
	th := throttle.New(client, throttle.Options{
		Prefix: "test", Limit: limit, Window: time.Minute,
		Timeout: 100 * time.Millisecond, Retry: 200 * time.Millisecond, Metrics: registry,
	})
	server.Kill()
	start := time.Now()
	allowed := 0
	for range 10 * limit {
		got := th.Allow(t.Context(), 1)
		if got.Allowed {
			allowed++
		}
		if got.Limit != limit || got.Remaining != limit-allowed || !got.ResetAt.After(start) {
			t.Fatalf("%+v", got)
		}
	}
	if allowed != limit {
		t.Errorf("%d passed without redis, want %d", allowed, limit)
	}
	if spent := time.Since(start); spent > 5*time.Second {
		t.Errorf("%d requests took %v: each of them waits for redis", 10*limit, spent)
	}
	if n := counter(t, registry, "intumwa_rate_limit_local_total"); n != 10*limit {
		t.Errorf("%v requests counted locally", n)
	}

	server.Start()
	for deadline := time.Now().Add(patient); ; {
		th.Allow(t.Context(), 2)
		if count, err := client.Get(t.Context(), "test:throttle:{2}").Int(); err == nil && count > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("Redis is back, but does not count")
		}
	}
}

func TestDisconnectIsNoOutage(t *testing.T) {
	client, prefix := testenv.Redis(t)
	th := throttle.New(client, throttle.Options{Prefix: prefix, Limit: 9, Timeout: patient})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 5 {
		if got := th.Allow(ctx, 1); !got.Allowed || got.Remaining != 8-i {
			t.Errorf("%+v", got)
		}
	}
	if count, err := client.Get(t.Context(), prefix+":throttle:{1}").Int(); err != nil || count != 5 {
		t.Errorf("counted %d, %v", count, err)
	}
}

func counter(t testing.TB, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func BenchmarkAllow(b *testing.B) {
	client, prefix := testenv.Redis(b)
	th := throttle.New(client, throttle.Options{Prefix: prefix, Limit: 1 << 30, Timeout: patient})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			th.Allow(b.Context(), 1)
		}
	})
}
