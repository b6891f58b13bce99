package smppserver

import (
	"sync"
	"time"

	"intumwa/sms"
)

// bucket limits the segments of a key in this process.
//
// It holds at least one longest message. A message passes while anything is left, and may leave a debt: no message is
// too long to pass, and the parts of a message that has begun are not cut off.
type bucket struct {
	mu    sync.Mutex
	rate  float64 // segments a second
	left  float64
	since time.Time
}

func (b *bucket) size() float64 { return max(b.rate, sms.MaxSegments) }

// set changes the rate.
func (b *bucket) set(rate float64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() {
		b.rate, b.since = rate, now
		b.left = b.size()
		return
	}
	b.fill(now)
	b.rate = rate
	b.left = min(b.left, b.size())
}

func (b *bucket) fill(now time.Time) {
	b.left = min(b.left+b.rate*now.Sub(b.since).Seconds(), b.size())
	b.since = now
}

// full reports whether nothing is missing.
func (b *bucket) full(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	return b.left >= b.size()
}

// take takes a message's segments; false if it comes too fast. further: it is a part of a message whose first part has
// passed.
func (b *bucket) take(segments int, further bool, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	least := 0.0
	if further {
		least = -b.size()
	}
	if b.left <= least {
		return false
	}
	b.left -= float64(segments)
	return true
}

// giveBack returns the segments of a message that was not accepted.
func (b *bucket) giveBack(segments int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+float64(segments), b.size())
}
