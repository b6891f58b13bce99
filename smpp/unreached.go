package smpp

import "time"

// unreached is since when a bind has not reached its carrier.
type unreached struct {
	since  time.Time // zero: it is bound, or does not run
	failed bool      // an attempt has failed since then
}

// Unreached returns for how long the bind has not reached its carrier, if an attempt has
// failed in that time. It is 0 for a bind that is up, and begins anew when a bind is lost or
// the carrier refuses one.
func (b *Bind) Unreached() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.unreached.failed {
		return 0
	}
	return time.Since(b.unreached.since)
}

// reached notes that the carrier was reached at a moment; zero: as long as it is not changed.
func (b *Bind) reached(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unreached = unreached{since: at}
}

// missed notes that an attempt has not reached the carrier.
func (b *Bind) missed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unreached.failed = true
}
