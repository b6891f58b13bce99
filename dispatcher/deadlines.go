package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// decidedAtOnce is how many messages one transaction of a task decides.
const decidedAtOnce = 5_000

// overdue decides messages whose receipts did not come.
func (d *Dispatcher) overdue(ctx context.Context) error {
	carriers := d.running()
	names := make([]string, len(carriers))
	longest := time.Hour // what a carrier that is no longer configured had at least
	for i, c := range carriers {
		config := c.config()
		names[i], longest = c.name, max(longest, config.ReceiptTimeout)
		if err := d.overdueOf(ctx, func(tx pgx.Tx, age time.Duration) ([]int64, bool, error) {
			return d.store.Overdue(ctx, tx, c.name, age, decidedAtOnce)
		}, config.ReceiptTimeout, config.OnReceiptTimeout); err != nil {
			return err
		}
	}
	if err := d.overdueOf(ctx, func(tx pgx.Tx, age time.Duration) ([]int64, bool, error) {
		return d.store.OverdueElsewhere(ctx, tx, names, age, decidedAtOnce)
	}, longest, sms.Failed); err != nil {
		return err
	}
	return d.overdueTimed(ctx, carriers, longest)
}

// overdueTimed decides messages whose receipts did not come, of those whose time is not
// that of all others.
func (d *Dispatcher) overdueTimed(ctx context.Context, carriers []*carrier, longest time.Duration) error {
	configs := make(map[string]*Carrier, len(carriers))
	for _, c := range carriers {
		configs[c.name] = c.config()
	}
	timeout := func(carrier string) time.Duration {
		if c := configs[carrier]; c != nil {
			return c.ReceiptTimeout
		}
		return longest
	}
	for done := false; !done; {
		if err := d.finish(ctx, "deciding overdue timed messages", func(tx pgx.Tx) ([]messages.Final, error) {
			overdue, end, err := d.carrying.OverdueTimed(ctx, tx, timeout, decidedAtOnce)
			done = end
			finals := make([]messages.Final, 0, len(overdue))
			for id, carrier := range overdue {
				status := sms.Failed
				if c := configs[carrier]; c != nil {
					status = c.OnReceiptTimeout
				}
				finals = append(finals, messages.Final{MessageID: id, Status: status, At: postgres.Now(), Reason: submission.Overdue(status)})
			}
			return finals, err
		}); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dispatcher) overdueOf(ctx context.Context, find func(tx pgx.Tx, age time.Duration) (ids []int64, done bool, err error), timeout time.Duration, status sms.Status) error {
	for done := false; !done; {
		err := d.finish(ctx, "deciding overdue messages", func(tx pgx.Tx) ([]messages.Final, error) {
			ids, end, err := find(tx, d.opts.Validity+timeout)
			done = end
			finals := make([]messages.Final, len(ids))
			for i, id := range ids {
				finals[i] = messages.Final{MessageID: id, Status: status, At: postgres.Now(), Reason: submission.Overdue(status)}
			}
			return finals, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// finish concludes, in one transaction, what find brings.
func (d *Dispatcher) finish(ctx context.Context, doing string, find func(pgx.Tx) ([]messages.Final, error)) error {
	var settled []messages.Settled
	err := postgres.InTx(ctx, d.hot, func(tx pgx.Tx) error {
		settled = nil // of a try before
		finals, err := find(tx)
		if err != nil || len(finals) == 0 {
			return err
		}
		settled, err = d.conclude(ctx, tx, d.carrying, finals, messages.Ends{Done: sentIDs(finals)})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	d.report(settled)
	return nil
}

// forget deletes what has been kept long enough.
func (d *Dispatcher) forget(ctx context.Context) error {
	_, reported := receipts.Forget(ctx, d.pool, d.opts.ReceiptRetention)
	_, inbound := d.handsets.Forget(ctx, d.opts.InboundRetention)
	_, held := d.store.ForgetHeld(ctx, d.opts.Validity)
	return errors.Join(reported, inbound, held)
}

// sentIDs are those that a verdict takes as sent: they are not sent again.
func sentIDs(finals []messages.Final) (ids []int64) {
	for _, f := range finals {
		if f.Status == sms.Sent {
			ids = append(ids, f.MessageID)
		}
	}
	return ids
}
