package dispatcher

import (
	"sync"
	"sync/atomic"
	"time"

	"intumwa/messages/outbox"
	"intumwa/messages/submission"
	"intumwa/smpp"
)

// inFlight is one claimed message on its way over one link. Its segments go out in
// order. The settler takes their results in any order; only it touches the fields
// after the blank line.
type inFlight struct {
	carrier   *carrier
	link      string          // that carries it: its name,
	slots     *slots          // its window,
	unsettled *sync.WaitGroup // and its messages that are not settled

	msg     *outbox.Claimed
	total   int // segments on the wire
	stopped atomic.Bool
	began   time.Time

	// The settler's, once the first segment is out.
	open    int                 // segments without a committed result
	results []submission.Result // the committed ones, and late refusals
}

// result is the outcome of one segment.
type result struct {
	message *inFlight
	segment int // from 1; 0: there was none to send
	smpp.Result
	at    time.Time
	slot  bool             // it held a slot
	event submission.Event // of the result; set by heard, or at once if no carrier was involved
}

// heard returns the result as an event of the segment's submission.
func (r *result) heard() submission.Event {
	if r.event == nil {
		r.event = r.message.carrier.config().event(r.Result, r.message.msg.Attempt)
	}
	return r.event
}

// submitKey is the key of a segment in flight; fromKey decodes it.
func submitKey(messageID int64, segment, total int) uint64 {
	return uint64(messageID)<<16 | uint64(segment)<<8 | uint64(total)
}

// fromKey decodes a key of submitKey.
func fromKey(key uint64) (messageID int64, segment, total int) {
	return int64(key >> 16), int(key >> 8 & 0xFF), int(key & 0xFF)
}
