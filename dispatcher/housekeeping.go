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

// tasks returns the tasks of housekeeping, in their order. A failed task does not stop the next.
func (d *housekeeping) tasks() []*task {
	often, seldom := d.opts.SweepInterval, 10*d.opts.SweepInterval
	return []*task{
		{name: "hold", every: often, rest: worked, run: d.releaseHeld},
		{name: "pay_refunds", every: often, rest: worked, run: d.payOwed},
		{name: "low_balances", every: often, rest: swept, run: d.tellLow},
		{name: "finished_batches", every: often, rest: worked, run: d.tellFinished},
		{name: "end_overdue", every: seldom, rest: worked, run: d.overdue},
		{name: "forget", every: seldom, rest: worked, run: d.forget},
		{name: "purge", every: seldom, rest: worked, run: d.purge},
	}
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
