package smpp

import (
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

const (
	backoffBase = time.Second
	backoffMost = 30 * time.Second
	// stableAfter is how long a bind must have held to forget earlier failures.
	stableAfter = 60 * time.Second
	// rejectedHold keeps a bind with wrong credentials from locking the account.
	rejectedHold = 5 * time.Minute
	// alreadyBoundHold gives the carrier time to notice that our last session
	// is dead.
	alreadyBoundHold = 30 * time.Second
)

// backoff computes the wait before the next bind: full jitter below a ceiling that
// doubles from base to most, but at least a tenth of base; longer after statuses that
// require it.
type backoff struct {
	base, most time.Duration
	failures   int
}

// served records that a bind has lasted for d.
func (b *backoff) served(d time.Duration) {
	if d >= stableAfter {
		b.failures = 0
	}
}

// next returns the wait after a bind that failed, or was lost, with err. A bind that timed out
// has spared the carrier already, so the next one follows soon: a carrier that was silent is
// bound soon after it comes back.
func (b *backoff) next(err error) time.Duration {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return max(rand.N(b.base), b.base/10)
	}
	ceiling := min(b.base<<min(b.failures, 10), b.most)
	b.failures++
	switch bindStatus(err) {
	case StatusInvPassword, StatusInvSystemID, StatusInvSysType:
		return rejectedHold + rand.N(rejectedHold/10)
	case StatusAlreadyBound:
		return alreadyBoundHold + rand.N(alreadyBoundHold)
	}
	return max(rand.N(ceiling), b.base/10)
}

// bindStatus returns the status a bind was refused with, StatusOK for any other
// error.
func bindStatus(err error) Status {
	var refused *StatusError
	if errors.As(err, &refused) && strings.HasPrefix(refused.Command, "bind_") {
		return refused.Status
	}
	return StatusOK
}
