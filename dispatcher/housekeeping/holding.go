package housekeeping

import (
	"context"
	"errors"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/messages/outbox"
)

// releaseHeld releases the messages of companies and senders that are approved again. When
// claims have started to hold a sender, it holds the sender's other messages. Each sender gets
// its part of a round, and at least one step.
func (d *Housekeeping) releaseHeld(ctx context.Context) (failed error) {
	holds, err := d.Store.Outbox.Holds(ctx)
	if err != nil {
		return err
	}
	progress := make(map[outbox.Hold]holding, len(holds))
	for _, h := range holds {
		at := d.holding[h]
		if at.done {
			progress[h] = at
			continue
		}
		err := core.Sliced(core.TaskSlice/time.Duration(len(holds)), func() (more bool, err error) {
			n, next, err := d.Store.Outbox.FollowApproval(ctx, h, at.after)
			if err == nil {
				at = holding{after: next, count: at.count + n, done: n == 0} // another pass takes what was locked
			}
			return !at.done, err
		})
		failed = errors.Join(failed, err)
		switch {
		case !at.done:
		case !h.Over:
			d.Log.Warn("queued messages held: their company or sender is no longer approved", "event", "messages_held",
				"company", h.CompanyID, "sender", h.Sender, "messages", at.count)
		case at.count > 0:
			d.Log.Info("held messages released: their company and sender are approved again", "event", "messages_released",
				"company", h.CompanyID, "sender", h.Sender, "messages", at.count)
		}
		if at.done && h.Over {
			at = holding{} // another transaction may have locked some
		}
		progress[h] = at
	}
	d.holding = progress
	return failed
}
