package keys

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"intumwa/accounts"
)

// slowReads is a load that takes 10 ms and counts.
func slowReads(n *atomic.Int64) func(context.Context, int64) (*entry, error) {
	return func(ctx context.Context, id int64) (*entry, error) {
		n.Add(1)
		select {
		case <-time.After(10 * time.Millisecond):
			return &entry{principal: &accounts.Principal{TokenID: id}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func TestMissesShareARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		c := newCache(slowReads(&reads), nil)
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := c.get(impatient, 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the impatient caller: %v", err)
			}
		})
		synctest.Wait()
		for range 100 {
			all.Go(func() {
				if e, err := c.get(t.Context(), 1); err != nil || e.principal.TokenID != 1 {
					t.Errorf("get: %v", err)
				}
			})
		}
		all.Wait()
		if n := reads.Load(); n != 1 {
			t.Errorf("%d reads, want 1", n)
		}
		time.Sleep(maxEntryAge - 11*time.Millisecond)
		if _, err := c.get(t.Context(), 1); err != nil || reads.Load() != 1 {
			t.Errorf("before its age: %v, %d reads", err, reads.Load())
		}
		time.Sleep(time.Millisecond)
		if _, err := c.get(t.Context(), 1); err != nil || reads.Load() != 2 {
			t.Errorf("at its age: %v, %d reads", err, reads.Load())
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache(nil, nil)
	now := time.Now()
	for id := range int64(maxEntries) {
		c.store(id, &entry{principal: &accounts.Principal{}, readAt: now.Add(time.Hour)})
	}
	c.store(-1, &entry{principal: &accounts.Principal{}, readAt: now})
	if n := len(c.entries); n > maxEntries*9/10+1 {
		t.Errorf("%d entries with none too old", n)
	}
	if c.entries[-1] == nil {
		t.Error("the newcomer was evicted")
	}
}

// An id without a token is read as rarely as one with a token. Such ids evict no customer, and their number is bounded.
func TestUnknownTokensAreCachedBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := map[int64]int{}
		c := newCache(func(_ context.Context, id int64) (*entry, error) {
			reads[id]++
			if id == 1 {
				return &entry{principal: &accounts.Principal{TokenID: 1}}, nil
			}
			return &entry{}, nil
		}, nil)
		for range 100 {
			for _, id := range []int64{1, 7} {
				e, err := c.get(t.Context(), id)
				if err != nil || (e.principal != nil) != (id == 1) {
					t.Fatalf("token %d: %+v %v", id, e, err)
				}
			}
		}
		if reads[1] != 1 || reads[7] != 1 {
			t.Errorf("%d reads of a known token, %d of an unknown one; want 1 of each", reads[1], reads[7])
		}
		time.Sleep(maxEntryAge)
		if _, err := c.get(t.Context(), 7); err != nil || reads[7] != 2 {
			t.Errorf("past its age: %d reads, %v", reads[7], err)
		}
		c.forget(7)
		if _, err := c.get(t.Context(), 7); err != nil || reads[7] != 3 {
			t.Errorf("forgotten: %d reads, %v", reads[7], err)
		}
		for id := range int64(3 * maxUnknown) {
			if _, err := c.get(t.Context(), 100+id); err != nil {
				t.Fatal(err)
			}
			if len(c.unknown) > maxUnknown {
				t.Fatalf("%d unknown ids are kept", len(c.unknown))
			}
		}
		if c.peek(1) == nil || c.peek(7) != nil || c.peek(100) != nil {
			t.Error("the customer's entry is gone, or a guess is taken for a token")
		}
	})
}

// A new token replaces the cached miss of its id, and a revoked one becomes a miss.
func TestUnknownTokenIsCreatedAndRevoked(t *testing.T) {
	known := false
	c := newCache(func(context.Context, int64) (*entry, error) {
		if known {
			return &entry{principal: &accounts.Principal{}}, nil
		}
		return &entry{}, nil
	}, nil)
	for _, known = range []bool{false, true, false, true} {
		if _, err := c.read(t.Context(), 8); err != nil {
			t.Fatal(err)
		}
		e, err := c.get(t.Context(), 8)
		if err != nil || (e.principal != nil) != known || len(c.entries)+len(c.unknown) != 1 {
			t.Errorf("known %v: %+v %v, %d and %d kept", known, e, err, len(c.entries), len(c.unknown))
		}
	}
}

// A read does not replace the result of one that began later.
func TestOvertakenReadIsDropped(t *testing.T) {
	c := newCache(nil, nil)
	now := time.Now()
	later := &entry{principal: &accounts.Principal{}, readAt: now}
	c.store(1, later)
	c.store(1, &entry{principal: &accounts.Principal{}, readAt: now.Add(-time.Millisecond)})
	if c.entries[1] != later {
		t.Error("the earlier read won")
	}
}
