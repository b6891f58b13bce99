package throttle

import (
	"sync"
	"time"
)

// localUsers is how many windows an instance remembers, some 4 MB.
const localUsers = 1 << 16

// local counts in this instance's memory, by the same rule as countScript.
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

// makeRoom forgets the windows that have ended, once a window's length at most
// (it looks at all of them), or else some other: to gain a fresh window that
// way one would need tens of thousands of users.
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
