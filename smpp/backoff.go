package smpp

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	backoffBase  = time.Second
	backoffCap   = 30 * time.Second
	backoffFloor = 100 * time.Millisecond
	// stableAfter is how long a bind must have held to forget earlier failures.
	stableAfter = 60 * time.Second
	// rejectedHold keeps a link with wrong credentials from locking the account.
	rejectedHold = 5 * time.Minute
	// alreadyBoundHold gives the carrier time to notice that our last session
	// is dead.
	alreadyBoundHold = 30 * time.Second
)

// backoff says how long to wait before the next bind: full jitter under a
// ceiling that doubles from 1 s to 30 s, except for answers that need longer.
type backoff struct {
	failures int
}

// served notes that a bind had held for d.
func (b *backoff) served(d time.Duration) {
	if d >= stableAfter {
		b.failures = 0
	}
}

// next returns the wait after a bind that failed, or was lost, with err.
func (b *backoff) next(err error) time.Duration {
	ceiling := backoffCap
	if b.failures < 5 {
		ceiling = backoffBase << b.failures
	}
	b.failures++
	switch bindStatus(err) {
	case StatusInvPassword, StatusInvSystemID, StatusInvSysType:
		return rejectedHold + rand.N(rejectedHold/10)
	case StatusAlreadyBound:
		return alreadyBoundHold + rand.N(alreadyBoundHold)
	}
	return max(rand.N(ceiling), backoffFloor)
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
