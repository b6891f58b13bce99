package throttle_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
)

// Whatever another program does to a counter in Redis, no client waits longer than a
// window, no other client is affected, and the counter recovers.
func TestNeighbourInRedis(t *testing.T) {
	client, prefix := testenv.Redis(t)
	const limit = 3
	key := prefix + ":throttle:{7}"
	for _, c := range []struct {
		name    string
		write   func(context.Context, redis.Pipeliner)
		refused bool // until the window's end
	}{
		{"used up for a year", func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, limit, 365*24*time.Hour) },
			true},
		{"used up without an expiry", func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, limit, 0) }, true},
		{"fresh for a year", func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, 0, 365*24*time.Hour) }, false},
		{"a list", func(ctx context.Context, p redis.Pipeliner) { p.RPush(ctx, key, "x") }, false},
		{"a hash with an end", func(ctx context.Context, p redis.Pipeliner) {
			p.HSet(ctx, key, "a", 1)
			p.Expire(ctx, key, time.Hour)
		}, false},
		{"a text", func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, "hello", 0) }, false},
		{"nothing", func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, "", 0) }, false},
		{"a fraction", func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, "1.5", 0) }, false},
		{"infinity", func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, "1e400", 0) }, false},
		{"huge", func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, "9223372036854775807", 0) }, false},
		{"huger", func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, strings.Repeat("9", 400), 0) }, false},
		{"negative", func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, key, "-1000000", 0) }, false},
	} {
		th := throttle.New(client, throttle.Options{Prefix: prefix, Limit: limit, Window: time.Minute, Timeout: patient})
		if err := client.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := client.TxPipelined(t.Context(),
			func(p redis.Pipeliner) error { c.write(t.Context(), p); return nil }); err != nil {
			t.Fatal(err)
		}
		passed := 0
		for range 3 * limit {
			got := th.Allow(t.Context(), 7)
			if got.Allowed {
				passed++
			}
			if wait := time.Until(got.ResetAt); wait > time.Minute || got.Remaining < 0 || got.Remaining > limit {
				t.Errorf("%s: %+v, to wait %v", c.name, got, wait)
			}
			if other := th.Allow(t.Context(), 8); other.Limit != limit || time.Until(other.ResetAt) > time.Minute {
				t.Errorf("%s: another user: %+v", c.name, other)
			}
		}
		if c.refused != (passed == 0) || passed > limit+1 { // the request that met the foreign counter was counted locally
			t.Errorf("%s: %d of %d passed", c.name, passed, 3*limit)
		}
		if left, err := client.PTTL(t.Context(), key).Result(); err != nil || left <= 0 || left > time.Minute {
			t.Errorf("%s: the counter ends in %v, %v", c.name, left, err)
		}
		if _, err := client.Get(t.Context(), key).Int(); err != nil {
			t.Errorf("%s: it has not healed: %v", c.name, err)
		}
	}
}

// A refused user is refused again without Redis until the window ends.
func TestRefused(t *testing.T) {
	client, prefix := testenv.Redis(t)
	th := throttle.New(client, throttle.Options{Prefix: prefix, Limit: 1, Window: 300 * time.Millisecond,
		Timeout: patient})
	th.Allow(t.Context(), 1)
	if _, refused := th.Refused(1); refused {
		t.Error("refused without having been")
	}
	last := th.Allow(t.Context(), 1)
	for deadline := time.Now().Add(patient); last.Allowed; last = th.Allow(t.Context(), 1) {
		if time.Now().After(deadline) {
			t.Fatal("two in a window passed, again and again")
		}
	}
	if until, refused := th.Refused(1); time.Until(last.ResetAt) > 0 && (!refused || !until.Equal(last.ResetAt)) {
		t.Errorf("refused %v until %v, want %v", refused, until, last.ResetAt)
	}
	if _, refused := th.Refused(2); refused {
		t.Error("another user is refused")
	}
	for deadline := time.Now().Add(patient); ; {
		if _, refused := th.Refused(1); !refused {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("refused past the window")
		}
	}
}
