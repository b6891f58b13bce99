package throttle

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLocalAgainstModel: exactly limit requests pass in the window that a user's first
// request opens.
func TestLocalAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		l := newLocal(limit, time.Minute)
		now := time.Unix(1_800_000_000, 0)
		type opened struct {
			at       time.Time
			requests int
		}
		model := map[int64]opened{}
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms")) * time.Millisecond)
			user := rapid.Int64Range(1, 3).Draw(t, "user")
			w, known := model[user]
			if !known || now.Sub(w.at) >= time.Minute {
				w = opened{at: now}
			}
			want := w.requests < limit
			if want {
				w.requests++
			}
			model[user] = w
			got := l.allow(user, now)
			if got != (Decision{Allowed: want, Limit: limit, Remaining: limit - w.requests, ResetAt: w.at.Add(time.Minute)}) {
				t.Fatalf("%+v, the model has %+v", got, w)
			}
		}
	})
}

func TestLocalMemoryIsBounded(t *testing.T) {
	l := newLocal(1, time.Minute)
	l.most = 100
	now := time.Unix(1_800_000_000, 0)
	for user := range int64(10_000) {
		if !l.allow(user, now).Allowed {
			t.Fatalf("user %d's first request was refused", user)
		}
		if len(l.windows) > l.most {
			t.Fatalf("%d windows are kept", len(l.windows))
		}
	}
	// Expired windows go first: a live window survives the sweep.
	later := now.Add(time.Minute)
	l.allow(20_000, later)
	if l.allow(20_000, later).Allowed || len(l.windows) != 1 {
		t.Errorf("%d windows after the sweep", len(l.windows))
	}
}

func TestBreaker(t *testing.T) {
	b := breaker{retry: time.Second}
	now := time.Unix(1_800_000_000, 0)
	for range failuresToOpen - 1 {
		if !b.enter(now) || b.fail(now) {
			t.Fatal("opened too early")
		}
	}
	if b.succeed() || !b.enter(now) {
		t.Fatal("a success did not start the count again")
	}
	for i := range failuresToOpen {
		if opened := b.fail(now); opened != (i == failuresToOpen-1) {
			t.Fatalf("failure %d: opened %v", i+1, opened)
		}
	}
	if b.enter(now) || b.enter(now.Add(time.Second-1)) {
		t.Error("open, and yet it lets through")
	}
	now = now.Add(time.Second)
	if !b.enter(now) || b.enter(now) {
		t.Error("exactly one is to try again")
	}
	if b.fail(now) {
		t.Error("it was open already")
	}
	if now = now.Add(time.Second); !b.enter(now) || !b.succeed() || !b.enter(now) || !b.enter(now) {
		t.Error("the success did not close it")
	}
}
