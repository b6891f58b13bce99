// Package housekeeping does work that may be slow: it releases suspended messages, ends overdue ones, pays deferred
// refunds, writes notices and purges. Its tasks run in one process at a time; its gauges in every one.
package housekeeping

import (
	"context"
	"time"

	"intumwa/billing"
	"intumwa/dispatcher/core"
	"intumwa/messages/outbox"
)

// Housekeeping does its work for all processes, in one at a time. There may be millions of rows; each round does a part
// of them.
type Housekeeping struct {
	*core.Core
	refundsHeld bool                            // a locked balance delays refunds
	following   map[outbox.Suspension]following // the progress of the task hold
	forgetAt    time.Time                       // the next look for companies that asked for finished batches
}

// Tasks returns the tasks of housekeeping, in their order. A failed task does not stop the next.
func (d *Housekeeping) Tasks() []*core.Task {
	often, seldom := d.Opts.SweepInterval, 10*d.Opts.SweepInterval
	return []*core.Task{
		{Name: "hold", Every: often, Rest: core.Worked, Run: d.followApprovals},
		{Name: "pay_refunds", Every: often, Rest: core.Worked, Run: d.PayOwed},
		{Name: "low_balances", Every: often, Rest: core.Swept, Run: d.tellLow},
		{Name: "finished_batches", Every: often, Rest: core.Worked, Run: d.TellFinished},
		{Name: "end_overdue", Every: seldom, Rest: core.Worked, Run: d.Overdue},
		{Name: "forget", Every: seldom, Rest: core.Worked, Run: d.forget},
		{Name: "purge", Every: seldom, Rest: core.Worked, Run: d.purge},
	}
}

// following is the progress of suspending or releasing a sender's messages.
type following struct {
	after int64 // the message to continue after
	count int64 // of messages so far
	done  bool
}

// PayOwed pays the refunds that settling put off because another transaction had
// locked the balance.
func (d *Housekeeping) PayOwed(ctx context.Context) error {
	refunded, waiting, err := billing.New(d.Pool).PayOwed(ctx)
	if err != nil {
		return err
	}
	d.Metrics.Refunds.Add(float64(refunded))
	if was := d.refundsHeld; (waiting > 0) != was {
		d.refundsHeld = !was
		if waiting > 0 {
			d.Log.Warn("refunds wait: another transaction has locked their balances or test pools", "event", "refunds_wait",
				"held", waiting)
		} else {
			d.Log.Info("refunds no longer wait for locked balances or test pools", "event", "refunds_resumed")
		}
	}
	return nil
}
