package submission

import (
	"time"

	"intumwa/sms"
)

// Copy is one copy of a segment that a carrier has, or may have.
type Copy struct {
	Segment  int        // from 1
	Answered bool       // its submit_sm_resp came
	Status   sms.Status // Pending, Sent or Failed
	At       time.Time  // when that was known
	Reason   string     // of Failed
	Passed   bool       // the message was sent on to another carrier since: this one's word is not asked any more
}

// Verdict returns what a message of so many segments is by the copies of them:
// failed as soon as one segment is, sent when all are (rule choices 5.4). at is
// when that was known. The order of the copies says nothing.
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

// segmentOf is what a segment is by its copies: sent when one arrived, failed
// when one that the carrier answered failed, or one that it did not and there is
// no other that it has and may still deliver.
func segmentOf(n int, copies []Copy) (one Copy) {
	live := false // a copy that the carrier has and that has not failed
	var failed, unanswered *Copy
	for i := range copies {
		c := &copies[i]
		switch {
		case c.Segment != n || c.Passed:
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

// MayGoElsewhere reports whether another carrier may be asked for a message by
// the recorded copies of it: each was accepted by this one, which then said that it
// will not be delivered. Nobody has any of them, and nobody will. A copy in flight is
// recorded nowhere: whoever asks sees to it that there is none.
func MayGoElsewhere(copies []Copy) bool {
	for _, c := range copies {
		if !c.Passed && !(c.Answered && c.Status == sms.Failed) {
			return false
		}
	}
	return true
}
