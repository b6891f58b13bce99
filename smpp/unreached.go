package smpp

import "time"

// unreached records since when a bind has not reached its carrier.
type unreached struct {
	since  time.Time // zero: bound, or not running
	failed bool      // an attempt has failed since
}

// Unreached returns how long the bind has not reached its carrier, if an attempt failed in
// that time, else 0. The time restarts when a bind is lost or the carrier refuses one.
func (b *Bind) Unreached() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.unreached.failed {
		return 0
	}
	return time.Since(b.unreached.since)
}

// reached records when the carrier was last reached; zero: still bound.
func (b *Bind) reached(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unreached = unreached{since: at}
}

// missed records a failed attempt.
func (b *Bind) missed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unreached.failed = true
}
