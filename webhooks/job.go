package webhooks

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"intumwa/internal/postgres"
)

// job is a delivery that this process has claimed.
type job struct {
	storedEvent

	tries   int         // attempts of this round before this one
	claim   time.Time   // webhook_undelivered.claimed_until: only its holder records a result
	calls   *firstCalls // that it belongs to; nil: it has a row of its own
	place   int         // in them
	beginBy time.Time   // on this machine's clock; a call that begins later could outlast the claim
	target  *target     // the endpoint at the time of the claim
}

// outcome is a finished attempt that is not stored yet. Without an attempt the delivery is released: pending, and due
// at once.
type outcome struct {
	job
	state   deliveryState
	delay   time.Duration // from the end of the attempt to the next one, while pending
	ended   time.Time
	attempt Attempt
}

func (r *outcome) called() bool { return r.attempt.Result != "" }

// due is when the next attempt is due: infinity after the last one, NULL after a success.
func (r *outcome) due() pgtype.Timestamptz {
	switch {
	case r.state == delivered:
		return pgtype.Timestamptz{}
	case r.ended.IsZero(): // it is being called
		return pgtype.Timestamptz{Time: r.at, Valid: true}
	case r.state == exhausted:
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	}
	return pgtype.Timestamptz{Time: postgres.Moment(r.ended.Add(r.delay)), Valid: true}
}

// claimedUntil is the claim under which the attempt was made. After a first call it is the new row's claim: nil if the
// call has ended, otherwise the time at which the calls end.
func (r *outcome) claimedUntil() *time.Time {
	switch {
	case r.calls == nil:
		return &r.claim
	case r.ended.IsZero():
		return &r.calls.ends
	}
	return nil
}

// deliveryState is a delivery's state after an attempt.
type deliveryState int

const (
	pending deliveryState = iota
	delivered
	exhausted
)

// schedule lists the delays between a failure and the next attempt. rule api 6
type schedule []time.Duration

// after returns a delivery's state after attempt number tries (from 1) of its round, and the delay before the next
// attempt. A receiver's Retry-After may lengthen it, at most to the delay after it: the schedule has no longer gaps
// than the contract's.
func (s schedule) after(tries int, success bool, retryAfter time.Duration) (deliveryState, time.Duration) {
	switch {
	case success:
		return delivered, 0
	case tries > len(s):
		return exhausted, 0
	}
	delay := s[tries-1]
	if tries < len(s) {
		delay = max(delay, min(retryAfter, s[tries]))
	}
	return pending, delay
}

// firstCalls are the deliveries of one transaction that this process calls without a claim: a row of
// webhook_first_calls.
type firstCalls struct {
	id       callsID
	ends     time.Time // from then on any process may end the row
	outcomes []outcome // one per delivery; those without an end are being called
	ended    int       // outcomes that have come
	since    time.Time // when the first of them came
	stored   bool      // the row has ended: each delivery has its own
}

type callsID = [16]byte // a ULID

// add adds an outcome and reports whether it is the first one.
func (c *firstCalls) add(r outcome) bool {
	c.outcomes[r.place] = r
	if c.ended++; c.ended == 1 {
		c.since = time.Now()
	}
	return c.ended == 1
}
