package dispatcher

import (
	"context"
	"errors"
	"time"

	"intumwa/dispatcher/profile"
	"intumwa/messages/receipts"
)

// echoInterval is how often receipts of unanswered segments are searched.
const echoInterval = time.Second

var errEchoed = errors.New("no answer, but a receipt that echoes its user_message_reference")

// endEchoed stops waiting for answers that a receipt has overtaken: submit_sm
// on a live link, past the response timeout, whose user_message_reference a
// receipt in the inbox echoes. Such a segment ends as unanswered now, not after
// unknown_hold. Settling it finds that receipt (receipts.Matcher.Record).
func (w *linkWorker) endEchoed(ctx context.Context) {
	overdue := w.bind.Overdue()
	if len(overdue) == 0 || w.carrier.config().NoReference {
		return
	}
	segments := make([]receipts.Segment, len(overdue))
	for i, key := range overdue {
		id, n, _ := fromKey(key)
		segments[i].Reference = profile.Reference(id, n)
		if m := w.inFlight.get(id); m != nil { // without a number no receipt matches
			segments[i].Number = m.msg.Number
		}
	}
	echoed, err := w.carrier.matcher().Echoed(ctx, w.hot, segments)
	if err != nil {
		w.log.Debug("looking for receipts of unanswered segments", "carrier", w.carrier.name, "link", w.link, "error", err)
		return
	}
	keys := make([]uint64, len(echoed))
	for i, n := range echoed {
		keys[i] = overdue[n]
	}
	w.bind.GiveUp(errEchoed, keys...)
}
