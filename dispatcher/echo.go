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

// watchEchoes ends the wait for answers that a receipt has overtaken: where a
// carrier leaves a submit_sm unanswered past the response timeout, on a link
// that lives, and a receipt in the inbox echoes its user_message_reference, the
// segment ends as unanswered now, not when unknown_hold is over. Settling it
// finds that receipt (messages.Store.Record).
func (w *linkWorker) watchEchoes(ctx context.Context) {
	for sleep(ctx, echoInterval) == nil {
		if w.carrier.config().NoReference {
			continue
		}
		for _, bind := range w.binds.all {
			overdue := bind.Overdue()
			if len(overdue) == 0 {
				continue
			}
			segments := make([]messages.Unanswered, len(overdue))
			for i, key := range overdue {
				id, n, _ := fromKey(key)
				segments[i] = messages.Unanswered{MessageID: id, Segment: n, Reference: reference(id, n)}
			}
			echoed, err := w.d.carrying.Echoed(ctx, w.carrier.name, segments)
			if err != nil {
				w.d.log.Debug("looking for receipts of unanswered segments", "carrier", w.carrier.name, "link", w.link, "error", err)
				break
			}
			bind.GiveUp(errEchoed, slices.DeleteFunc(overdue, func(key uint64) bool {
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
