package dispatcher

import (
	"context"
	"errors"
	"slices"
	"time"

	"intumwa/messages"
)

// echoInterval lies between two looks for receipts of segments that a carrier
// has left unanswered.
const echoInterval = time.Second

var errEchoed = errors.New("no answer, but a receipt that echoes its user_message_reference")

// heedEchoes ends the wait for answers that a receipt has overtaken: where a
// carrier leaves a submit_sm unanswered past the response timeout, on a link
// that lives, and a receipt in the inbox echoes its user_message_reference, the
// segment ends as unanswered now, not when unknown_hold is over. Settling it
// finds that receipt (messages.Store.Record).
func (l *lane) heedEchoes(ctx context.Context) {
	for sleep(ctx, echoInterval) == nil {
		if l.carrier.config().NoReference {
			continue
		}
		for _, link := range l.binds.links {
			overdue := link.Overdue()
			if len(overdue) == 0 {
				continue
			}
			segments := make([]messages.Unanswered, len(overdue))
			for i, key := range overdue {
				id, n, _ := fromKey(key)
				segments[i] = messages.Unanswered{MessageID: id, Segment: n, Reference: reference(id, n)}
			}
			echoed, err := l.d.carrying.Echoed(ctx, l.carrier.name, segments)
			if err != nil {
				l.d.log.Debug("looking for receipts of unanswered segments", "carrier", l.carrier.name, "link", l.link, "error", err)
				break
			}
			link.GiveUp(errEchoed, slices.DeleteFunc(overdue, func(key uint64) bool {
				id, n, _ := fromKey(key)
				return !slices.Contains(echoed, messages.Unanswered{MessageID: id, Segment: n, Reference: reference(id, n)})
			})...)
		}
	}
}

// submitKey names a segment in flight; fromKey reads it.
func submitKey(messageID int64, segment, total int) uint64 {
	return uint64(messageID)<<16 | uint64(segment)<<8 | uint64(total)
}

func fromKey(key uint64) (messageID int64, segment, total int) {
	return int64(key >> 16), int(key >> 8 & 0xFF), int(key & 0xFF)
}
