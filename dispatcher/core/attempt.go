package core

import (
	"sync"
	"sync/atomic"
	"time"

	"intumwa/messages/outbox"
	"intumwa/messages/submission"
	"intumwa/smpp"
)

// InFlight is one claimed message on its way over one link. Its segments go out in
// order. The settler takes their results in any order; only it touches the fields
// after the blank line.
type InFlight struct {
	Carrier   *Carrier
	Link      string          // that carries it: its name,
	Slots     *Slots          // its window,
	Unsettled *sync.WaitGroup // and its messages that are not settled

	Msg     *outbox.Claimed
	Total   int // segments on the wire
	Stopped atomic.Bool
	Began   time.Time

	// The settler's, once the first segment is out.
	Open    int                 // segments without a committed result
	Results []submission.Result // the committed ones, and late refusals
}

// Result is the outcome of one segment.
type Result struct {
	Message *InFlight
	Segment int // from 1; 0: there was none to send
	smpp.Result
	At    time.Time
	Slot  bool             // it held a slot
	Event submission.Event // of the result; set by heard, or at once if no carrier was involved
}

// Heard returns the result as an event of the segment's submission.
func (r *Result) Heard() submission.Event {
	if r.Event == nil {
		r.Event = r.Message.Carrier.Config().Event(r.Result, r.Message.Msg.Attempt)
	}
	return r.Event
}

// SubmitKey is the key of a segment in flight; FromKey decodes it.
func SubmitKey(messageID int64, segment, total int) uint64 {
	return uint64(messageID)<<16 | uint64(segment)<<8 | uint64(total)
}

// FromKey decodes a key of SubmitKey.
func FromKey(key uint64) (messageID int64, segment, total int) {
	return int64(key >> 16), int(key >> 8 & 0xFF), int(key & 0xFF)
}
