package links

import (
	"context"
	"errors"
	"time"

	"intumwa/dispatcher/core"
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
func (w *Worker) endEchoed(ctx context.Context) {
	overdue := w.Bind.Overdue()
	if len(overdue) == 0 || w.Carrier.Config().NoReference {
		return
	}
	segments := make([]receipts.Segment, len(overdue))
	for i, key := range overdue {
		id, n, _ := core.FromKey(key)
		segments[i].Reference = profile.Reference(id, n)
		if m := w.InFlight.Get(id); m != nil { // without a number no receipt matches
			segments[i].Number = m.Msg.Number
		}
	}
	echoed, err := w.Carrier.Matcher().Echoed(ctx, w.Hot, segments)
	if err != nil {
		w.Log.Debug("looking for receipts of unanswered segments", "carrier", w.Carrier.Name, "link", w.link, "error", err)
		return
	}
	keys := make([]uint64, len(echoed))
	for i, n := range echoed {
		keys[i] = overdue[n]
	}
	w.Bind.GiveUp(errEchoed, keys...)
}
