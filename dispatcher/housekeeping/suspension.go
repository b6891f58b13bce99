package housekeeping

import (
	"context"
	"errors"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/messages/outbox"
)

// followApprovals releases the messages of companies and senders that are approved again. When
// claims have started to suspend a sender, it suspends the sender's other messages. Each sender gets
// its part of a round, and at least one step.
func (d *Housekeeping) followApprovals(ctx context.Context) (failed error) {
	suspensions, err := d.Store.Outbox.Suspensions(ctx)
	if err != nil {
		return err
	}
	progress := make(map[outbox.Suspension]following, len(suspensions))
	for _, h := range suspensions {
		at := d.following[h]
		if at.done {
			progress[h] = at
			continue
		}
		err := core.Sliced(core.TaskSlice/time.Duration(len(suspensions)), func() (more bool, err error) {
			n, next, err := d.Store.Outbox.FollowApproval(ctx, h, at.after)
			if err == nil {
				at = following{after: next, count: at.count + n, done: n == 0} // another pass takes what was locked
			}
			return !at.done, err
		})
		failed = errors.Join(failed, err)
		switch {
		case !at.done:
		case !h.Over:
			d.Log.Warn("queued messages suspended: their company or sender is no longer approved", "event", "messages_held",
				"company", h.CompanyID, "sender", h.Sender, "messages", at.count)
		case at.count > 0:
			d.Log.Info("suspended messages released: their company and sender are approved again", "event", "messages_released",
				"company", h.CompanyID, "sender", h.Sender, "messages", at.count)
		}
		if at.done && h.Over {
			at = following{} // another transaction may have locked some
		}
		progress[h] = at
	}
	d.following = progress
	return failed
}
