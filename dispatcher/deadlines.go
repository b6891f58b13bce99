package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// decidedAtOnce is the most messages that one transaction of a task decides.
const decidedAtOnce = 5_000

// overdue decides messages whose receipts are overdue: those of each carrier, of carriers no
// longer configured, and those with their own validity.
func (d *Dispatcher) overdue(ctx context.Context) error {
	configs, longest := map[string]*Carrier{}, time.Hour // the least for carriers no longer configured
	for _, c := range d.running() {
		config := c.config()
		configs[c.name], longest = config, max(longest, config.ReceiptTimeout)
	}
	timeout := func(carrier string) time.Duration {
		if c := configs[carrier]; c != nil {
			return c.ReceiptTimeout
		}
		return longest
	}
	for name := range configs {
		if err := d.decideOverdue(ctx, configs, func(tx pgx.Tx) (map[int64]string, bool, error) {
			ids, done, err := d.store.Overdue(ctx, tx, name, d.opts.Validity+timeout(name), decidedAtOnce)
			return ofCarrier(ids, name), done, err
		}); err != nil {
			return err
		}
	}
	if err := d.decideOverdue(ctx, configs, func(tx pgx.Tx) (map[int64]string, bool, error) {
		ids, done, err := d.store.OverdueElsewhere(ctx, tx, slices.AppendSeq([]string{}, maps.Keys(configs)), d.opts.Validity+longest, decidedAtOnce)
		return ofCarrier(ids, ""), done, err
	}); err != nil {
		return err
	}
	return d.decideOverdue(ctx, configs, func(tx pgx.Tx) (map[int64]string, bool, error) {
		return d.carrying.OverdueTimed(ctx, tx, timeout, decidedAtOnce)
	})
}

func ofCarrier(ids []int64, carrier string) map[int64]string {
	overdue := make(map[int64]string, len(ids))
	for _, id := range ids {
		overdue[id] = carrier
	}
	return overdue
}

// decideOverdue decides the messages that find returns, with their carriers, until none is left.
func (d *Dispatcher) decideOverdue(ctx context.Context, configs map[string]*Carrier, find func(tx pgx.Tx) (overdue map[int64]string, done bool, err error)) error {
	for done := false; !done; {
		if err := d.finish(ctx, "deciding overdue messages", func(tx pgx.Tx) ([]messages.Final, error) {
			overdue, end, err := find(tx)
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

// finish concludes the messages that find returns, in one transaction.
func (d *Dispatcher) finish(ctx context.Context, doing string, find func(pgx.Tx) ([]messages.Final, error)) error {
	var settled []messages.Settled
	err := postgres.InTx(ctx, d.hot, func(tx pgx.Tx) error {
		settled = nil // after a retry
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

// forget deletes receipts, MOs and unanswered messages after their retention.
func (d *Dispatcher) forget(ctx context.Context) error {
	_, reported := receipts.Forget(ctx, d.pool, d.opts.ReceiptRetention)
	_, inbound := d.handsets.Forget(ctx, d.opts.InboundRetention)
	_, unanswered := d.store.ForgetUnanswered(ctx, d.opts.Validity)
	return errors.Join(reported, inbound, unanswered)
}

// sentIDs returns the messages whose verdict is sent; they are not sent again.
func sentIDs(finals []messages.Final) (ids []int64) {
	for _, f := range finals {
		if f.Status == sms.Sent {
			ids = append(ids, f.MessageID)
		}
	}
	return ids
}
