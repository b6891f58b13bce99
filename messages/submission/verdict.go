package submission

import (
	"time"

	"intumwa/sms"
)

// Verdict returns the status of a message with this many segments, from their copies in any order: failed when one
// segment is, sent when all are (rule choices 5.4). at is when that was known.
func Verdict(segments int, copies []Copy) (status sms.Status, at time.Time, reason string) {
	sent := 0
	for n := 1; n <= segments; n++ {
		one := segmentOf(n, copies)
		switch one.Status {
		case sms.Failed:
			if status != sms.Failed || one.At.Before(at) {
				status, at, reason = sms.Failed, one.At, one.Reason
			}
		case sms.Sent:
			sent++
			if status != sms.Failed && one.At.After(at) {
				at = one.At
			}
		}
	}
	switch {
	case status == sms.Failed:
		return status, at, reason
	case sent == segments:
		return sms.Sent, at, ""
	}
	return sms.Pending, time.Time{}, ""
}

// segmentOf returns a segment's state from its copies: sent when one arrived; failed when an answered one failed, or an
// unanswered one without another copy that may still be delivered.
func segmentOf(n int, copies []Copy) (one Copy) {
	live := false // an answered copy that has not failed
	var failed, unanswered *Copy
	for i := range copies {
		c := &copies[i]
		switch {
		case c.Segment != n || c.Mark == Passed:
		case c.Status == sms.Sent:
			if one.Status != sms.Sent || c.At.Before(one.At) {
				one = *c
			}
		case c.Status == sms.Failed && c.Answered:
			failed = earlier(failed, c)
		case c.Status == sms.Failed:
			unanswered = earlier(unanswered, c)
		case c.Answered:
			live = true
		}
	}
	switch {
	case one.Status == sms.Sent:
	case failed != nil:
		one = *failed
	case unanswered != nil && !live:
		one = *unanswered
	}
	return one
}

func earlier(a, b *Copy) *Copy {
	if a == nil || b.At.Before(a.At) {
		return b
	}
	return a
}

// Undeliv is the receipt's state after which a second carrier may be chosen.
const Undeliv = "UNDELIV"

// Failing is the recorded state of a message that is about to fail at its carrier.
type Failing struct {
	Pending bool // and its validity is not over
	Claimed bool // except by the attempt that ends here
	Sent    bool // to a second carrier already
	Copies  []Copy
}

// MayGoElsewhere reports whether a second carrier may be chosen for a message: once, while it is valid, and only if the
// first carrier neither has nor may have any of it: no attempt is under way, and the carrier answered each recorded copy
// and reported it as UNDELIV within this time of its acceptance.
func MayGoElsewhere(m Failing, within time.Duration) bool {
	if !m.Pending || m.Claimed || m.Sent {
		return false
	}
	for _, c := range m.Copies {
		if c.Mark != Passed && !(c.Answered && c.Status == sms.Failed && c.Receipt == Undeliv && c.After <= within) {
			return false
		}
	}
	return true
}
