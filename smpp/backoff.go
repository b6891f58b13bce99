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
	// rejectedHold keeps a bind that the carrier will refuse again from locking the account.
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
// bound soon after it comes back. With another
// address to try, a refusal says nothing about that one: the standby of an SMSC refuses all binds.
func (b *backoff) next(err error, another bool) time.Duration {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return max(rand.N(b.base), b.base/10)
	}
	ceiling := min(b.base<<min(b.failures, 10), b.most)
	b.failures++
	if refused := refusal(err); refused != nil && !another {
		switch {
		case refused.Status == StatusAlreadyBound:
			return alreadyBoundHold + rand.N(alreadyBoundHold)
		case !bindSoon[refused.Status]:
			return rejectedHold + rand.N(rejectedHold/10)
		}
	}
	return max(rand.N(ceiling), b.base/10)
}

// bindSoon are the statuses of a refused bind that say nothing about the account: the carrier
// is busy or confused, or did not understand the PDU. After any other one, a vendor's too, the
// carrier refuses the next bind as well until somebody changes a setting, here or there.
var bindSoon = map[Status]bool{
	StatusOK:           true, // of a generic_nack
	StatusInvMsgLen:    true,
	StatusInvCmdLen:    true,
	StatusInvCmdID:     true,
	StatusInvBindState: true,
	StatusSysErr:       true,
	StatusMsgQueueFull: true,
	StatusThrottled:    true,
	StatusTemporary:    true,
	StatusUnknown:      true,
}

// refusal returns the carrier's refusal of a bind, nil for any other error.
func refusal(err error) *StatusError {
	var refused *StatusError
	if errors.As(err, &refused) && strings.HasPrefix(refused.Command, "bind_") {
		return refused
	}
	return nil
}

// bindStatus returns the status a bind was refused with, StatusOK for any other
// error.
func bindStatus(err error) Status {
	if refused := refusal(err); refused != nil {
		return refused.Status
	}
	return StatusOK
}
