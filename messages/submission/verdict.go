package submission

import (
	"time"

	"intumwa/sms"
)

// Verdict returns the status of a message with this many segments, from their submit records in any order: failed when
// one segment is, sent when all are (rule choices 5.4). at is when that was known.
func Verdict(segments int, records []Record) (status sms.Status, at time.Time, reason string) {
	status = sms.Sent
	for n := 1; n <= segments; n++ {
		switch one := segmentOf(n, records); {
		case one.Status == sms.Failed && (status != sms.Failed || one.At.Before(at)):
			status, at, reason = sms.Failed, one.At, one.Reason
		case one.Status == sms.Pending && status == sms.Sent:
			status = sms.Pending
		case status == sms.Sent && one.At.After(at):
			at = one.At
		}
	}
	if status == sms.Pending {
		return sms.Pending, time.Time{}, ""
	}
	return status, at, reason
}

// segmentOf returns the submit record that decides a segment's state: the earliest that arrived; else the earliest
// answered one that failed; else, unless an answered one may still be delivered, the earliest other one that failed.
// None: Pending.
func segmentOf(n int, records []Record) (best Record) {
	rank, live := 0, false
	for i := range records {
		c := &records[i]
		if c.Segment != n || c.Mark == Passed {
			continue
		}
		of := 0
		switch {
		case c.Status == sms.Sent:
			of = 3
		case c.Status == sms.Failed && c.Answered:
			of = 2
		case c.Status == sms.Failed:
			of = 1
		default:
			live = live || c.Answered
		}
		if of > rank || of == rank && c.At.Before(best.At) {
			rank, best = of, *c
		}
	}
	if rank == 0 || rank == 1 && live {
		return Record{}
	}
	return best
}

// Undeliv is the receipt's state after which a second carrier may be chosen.
const Undeliv = "UNDELIV"

// Failing is the recorded state of a message that is about to fail at its carrier.
type Failing struct {
	Pending bool // and its validity is not over
	Claimed bool // except by the attempt that ends here
	Sent    bool // to a second carrier already
	Records []Record

	Unregistered bool // its sender does not work at the second carrier
}

// MayGoElsewhere reports whether a second carrier may be chosen for a message: once, while it is valid, if its sender
// works there, and only if the first carrier neither has nor may have any of it: no attempt is under way, and the
// carrier answered each submit record and reported it as UNDELIV within this time of its acceptance.
func MayGoElsewhere(m Failing, within time.Duration) bool {
	if !m.Pending || m.Claimed || m.Sent || m.Unregistered {
		return false
	}
	for _, c := range m.Records {
		if c.Mark != Passed && !(c.Answered && c.Status == sms.Failed && c.Receipt == Undeliv && c.After <= within) {
			return false
		}
	}
	return true
}
