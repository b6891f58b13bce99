package dispatcher

import (
	"sync"
	"time"
)

// Bounds of a link's breaker.
const (
	breakerTrips    = 5 // refusals in a row, each for another handset
	breakerFirst    = 15 * time.Second
	breakerMost     = 5 * time.Minute
	breakerProbeFor = 30 * time.Second // how long one probe may go unanswered
)

// breaker stops a link whose carrier refuses everything because of our settings
// (a source TON, a service type). Without it our mistake would fail the whole
// queue. The messages stay pending. One probe at a time tests whether the
// carrier accepts again.
type breaker struct {
	first   time.Duration // its first pause
	mu      sync.Mutex
	numbers map[string]bool // handsets refused in a row
	open    bool
	reason  string
	until   time.Time // when the next probe may go
	pause   time.Duration
	probing bool // a probe is out; other answers are to segments sent before it opened
}

// refused counts a refusal that points to our configuration. It reports whether
// that opened the breaker.
func (b *breaker) refused(now time.Time, number, reason string) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		if b.probing { // it failed
			b.pause = min(2*b.pause, breakerMost)
			b.until, b.reason, b.probing = now.Add(b.pause), reason, false
		}
		return false
	}
	if b.numbers == nil {
		b.numbers = make(map[string]bool)
	}
	b.numbers[number] = true
	if len(b.numbers) < breakerTrips {
		return false
	}
	b.open, b.reason, b.pause, b.probing = true, reason, b.first, false
	b.until = now.Add(b.pause)
	return true
}

// answered records any other answer, and reports whether the breaker closed.
func (b *breaker) answered() (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	closed = b.open
	b.open, b.reason, b.probing = false, "", false
	clear(b.numbers)
	return closed
}

// ready reports whether messages, or at least a probe, may be taken.
func (b *breaker) ready(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.open || !now.Before(b.until)
}

// enter is called before each submit. An open breaker passes only a probe.
func (b *breaker) enter(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return true
	}
	if now.Before(b.until) {
		return false
	}
	b.until, b.probing = now.Add(breakerProbeFor), true
	return true
}

// state reports whether the breaker is open, and why.
func (b *breaker) state() (open bool, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open, b.reason
}
