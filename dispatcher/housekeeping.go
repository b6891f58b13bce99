package dispatcher

import (
	"context"
	"time"

	"intumwa/billing"
	"intumwa/messages/outbox"
)

// housekeeping is what one process at a time does for all, and what nothing waits for: it may have millions of rows to do,
// a part of them in each round.
type housekeeping struct {
	*core
	refundsHeld bool                    // a locked balance delays refunds
	holding     map[outbox.Hold]holding // the progress of the task hold
	forgetAt    time.Time               // when companies that asked for finished batches are looked for next, if none asks
}

// holding is the progress of holding or releasing a sender's messages.
type holding struct {
	after int64 // the message to continue after
	count int64 // of messages so far
	done  bool
}

// payOwed pays the refunds that settling put off because another transaction had
// locked the balance.
func (d *housekeeping) payOwed(ctx context.Context) error {
	refunded, waiting, err := billing.New(d.pool).PayOwed(ctx)
	if err != nil {
		return err
	}
	d.metrics.refunds.Add(float64(refunded))
	if was := d.refundsHeld; (waiting > 0) != was {
		d.refundsHeld = !was
		if waiting > 0 {
			d.log.Warn("refunds wait: another transaction has locked their balances or test pools", "event", "refunds_wait", "held", waiting)
		} else {
			d.log.Info("refunds no longer wait for locked balances or test pools", "event", "refunds_resumed")
		}
	}
	return nil
}
