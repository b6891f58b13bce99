package housekeeping

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// decideFor bounds one round of a task that decides messages: the others must have their turn.
const decideFor = 250 * time.Millisecond

// Overdue decides messages whose receipts are overdue: those of the configured carriers, and those of carriers that no
// process has in its configuration.
func (d *Housekeeping) Overdue(ctx context.Context) error {
	served, err := d.Served(ctx)
	if err != nil {
		return err
	}
	// the least for carriers of no process
	timeouts, status, longest := map[string]time.Duration{}, map[string]sms.Status{}, time.Hour
	for _, c := range d.Running() {
		config := c.Config()
		timeouts[c.Name], status[c.Name], longest = config.ReceiptTimeout, config.OnReceiptTimeout,
			max(longest, config.ReceiptTimeout)
	}
	times := messages.ReceiptTimeouts{Own: timeouts, Served: served, Otherwise: longest}
	for start, done := time.Now(), false; !done && time.Since(start) < decideFor; {
		if err := d.Finish(ctx, "deciding overdue messages", func(tx pgx.Tx) ([]messages.Final, error) {
			swept, err := d.Store.Messages.Expiring(ctx, tx, d.Opts.Validity, core.DecidedAtOnce)
			if err != nil {
				return nil, err
			}
			overdue, end, err := d.Carrying.Messages.Overdue(ctx, tx, times, core.DecidedAtOnce)
			done = swept && end
			finals := make([]messages.Final, 0, len(overdue))
			for id, carrier := range overdue {
				as := cmp.Or(status[carrier], sms.Failed)
				finals = append(finals, messages.Final{MessageID: id, Status: as, At: postgres.Now(),
					Reason: submission.Overdue(as)})
			}
			return finals, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes receipts and MOs after their retention.
func (d *Housekeeping) forget(ctx context.Context) error {
	_, reported := receipts.Forget(ctx, d.Pool, d.Opts.ReceiptRetention)
	_, inbound := d.Handsets.Forget(ctx, d.Opts.InboundRetention)
	return errors.Join(reported, inbound)
}
