package throttle

import (
	"sync"
	"sync/atomic"
	"time"
)

// localUsers is the number of windows that an instance keeps, about 4 MB.
const localUsers = 1 << 16

// local counts in this instance's memory, by the same rules as countScript.
type local struct {
	limit  int
	window time.Duration
	most   int

	mu      sync.Mutex
	windows map[int64]window
	swept   time.Time
}

type window struct {
	ends     time.Time
	requests int
}

func newLocal(limit int, length time.Duration) *local {
	return &local{limit: limit, window: length, most: localUsers, windows: make(map[int64]window)}
}

func (l *local) allow(user int64, now time.Time) Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, known := l.windows[user]
	if !known || !now.Before(w.ends) {
		if !known && len(l.windows) >= l.most {
			l.makeRoom(now)
		}
		w = window{ends: now.Add(l.window)}
	}
	pass := w.requests < l.limit
	if pass {
		w.requests++
	}
	l.windows[user] = w
	return Decision{Allowed: pass, Limit: l.limit, Remaining: l.limit - w.requests, ResetAt: w.ends}
}

func (l *local) giveBack(user int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.windows[user]; w.requests > 0 {
		w.requests--
		l.windows[user] = w
	}
}

// makeRoom removes expired windows, at most once per window's length (because it visits
// all), or else any one. To get a new window this way an attacker would need tens of
// thousands of users.
func (l *local) makeRoom(now time.Time) {
	if now.Sub(l.swept) >= l.window {
		l.swept = now
		for user, w := range l.windows {
			if !now.Before(w.ends) {
				delete(l.windows, user)
			}
		}
	}
	for user := range l.windows {
		if len(l.windows) < l.most {
			return
		}
		delete(l.windows, user)
	}
}

// failuresToOpen is how many calls in a row must fail before the breaker opens: one
// slow response is not an outage.
const failuresToOpen = 3

// breaker keeps requests from waiting for an absent Redis. It opens after failuresToOpen
// failures in a row; then one request per retry interval tries Redis, and a success
// closes the breaker.
type breaker struct {
	retry    time.Duration
	failures atomic.Int64
	until    atomic.Int64 // Unix nanoseconds of the next try; 0: closed
}

// enter reports whether to call Redis.
func (b *breaker) enter(now time.Time) bool {
	until := b.until.Load()
	if until == 0 {
		return true
	}
	return now.UnixNano() >= until && b.until.CompareAndSwap(until, now.Add(b.retry).UnixNano())
}

// fail records a failed call and reports whether that opened the breaker.
func (b *breaker) fail(now time.Time) bool {
	if b.failures.Add(1) < failuresToOpen {
		return false
	}
	return b.until.Swap(now.Add(b.retry).UnixNano()) == 0
}

// succeed records a successful call and reports whether that closed the breaker.
func (b *breaker) succeed() bool {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
	return b.until.Load() != 0 && b.until.Swap(0) != 0
}
