package throttle

import (
	"sync/atomic"
	"time"
)

// failuresToOpen is how many calls in a row must fail before Redis is left
// alone: one slow answer is no outage.
const failuresToOpen = 3

// breaker keeps requests from waiting, one after another, for a Redis that is
// away. It opens after failures in a row; then one request in every retry tries
// again, and its success closes it.
type breaker struct {
	retry    time.Duration
	failures atomic.Int64
	until    atomic.Int64 // Unix nanoseconds of the next try; 0: closed
}

// enter tells whether to ask Redis.
func (b *breaker) enter(now time.Time) bool {
	until := b.until.Load()
	if until == 0 {
		return true
	}
	return now.UnixNano() >= until && b.until.CompareAndSwap(until, now.Add(b.retry).UnixNano())
}

// fail records a call without answer; it answers whether that opened the
// breaker.
func (b *breaker) fail(now time.Time) bool {
	if b.failures.Add(1) < failuresToOpen {
		return false
	}
	return b.until.Swap(now.Add(b.retry).UnixNano()) == 0
}

// succeed records an answer; it answers whether that closed the breaker.
func (b *breaker) succeed() bool {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
	return b.until.Load() != 0 && b.until.Swap(0) != 0
}
