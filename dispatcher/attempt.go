package dispatcher

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/dispatcher/profile"
	"intumwa/messages"
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

// ambiguousDelay is the wait before a segment with a lost answer is sent again.
// Its receipt may settle it first.
const ambiguousDelay = 5 * time.Second

// event converts a segment's outcome to an event of its submission. attempt is the
// number of its message's attempt.
func (c *Carrier) event(r smpp.Result, attempt int) submission.Event {
	switch r.Outcome {
	case smpp.Accepted:
		return submission.Answered{Confirms: c.Confirm == ConfirmBySubmit}
	case smpp.Rejected:
		class := c.ClassOf(r.Status)
		if class != smpp.ClassPermanent && class != smpp.ClassUnroutable {
			return c.refusedForNow(r.Status, attempt)
		}
		return submission.Rejected{Permanent: true, Unroutable: class == smpp.ClassUnroutable && c.SecondCarrier != "", Reason: r.Status.String()}
	case smpp.NoAnswer:
		return submission.NoAnswer{Delay: ambiguousDelay}
	}
	if field, bad := errors.AsType[*smpp.FieldError](r.Err); bad {
		return submission.Unsendable{Reason: field.Error()}
	}
	return submission.NotWritten{}
}

// refusedForNow is the event of a refusal after which the message waits, whatever the class of
// the status.
func (c *Carrier) refusedForNow(s smpp.Status, attempt int) submission.Event {
	return submission.Rejected{Reason: s.Explained(), Delay: c.retryDelay(attempt, rand.Float64())}
}

// segments builds the submit_sm of a message, cut as its recorded copies were (profile.Profile.SegmentsAs). key reveals its
// one-time code.
func (c *Carrier) segments(m *outbox.Claimed, key []byte, now time.Time) ([]smpp.Submit, error) {
	return c.SegmentsAs(&profile.Message{ID: m.ID, Sender: m.Sender, Number: m.Number, Body: m.Secret.Reveal(key, m.Body), ConcatRef: m.ConcatRef,
		ExpiresAt: m.ExpiresAt, Single: m.Lane == messages.LaneSingle, Class: m.Class, Part: m.Part}, now, submission.TotalOf(m.Copies))
}

// submitKey is the key of a segment in flight; fromKey decodes it.
func submitKey(messageID int64, segment, total int) uint64 {
	return uint64(messageID)<<16 | uint64(segment)<<8 | uint64(total)
}

func fromKey(key uint64) (messageID int64, segment, total int) {
	return int64(key >> 16), int(key >> 8 & 0xFF), int(key & 0xFF)
}
