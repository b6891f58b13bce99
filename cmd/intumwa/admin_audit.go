package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/acts"
	"intumwa/billing"
	"intumwa/messages"
)

// auditGrace is what the sweeps may take past a message's last moment.
const auditGrace = 10 * time.Minute

type adminAuditCmd struct{}

type adminAudit struct {
	Companies          int64 `json:"companies"`
	BalanceMismatches  int64 `json:"balance_mismatches"`
	StuckPending       int64 `json:"stuck_pending"`
	OrphanQueueEntries int64 `json:"orphan_queue_entries"`
	UnpaidMessages     int64 `json:"unpaid_messages"`
	UnrecordedDebits   int64 `json:"unrecorded_debits"`
	PurgedMessages     int64 `json:"purged_messages"` // no fault
}

// Run proves the books: balance = sum of the ledger, every live message paid, every payment with its messages, every
// pending message on somebody's list. It fails when anything is not as it should be, having printed what.
func (adminAuditCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		var result adminAudit
		var err error
		if result.Companies, result.BalanceMismatches, err = billing.New(o.pool).Audit(ctx); err != nil {
			return nil, err
		}
		horizon := o.config.Messages.Validity + auditGrace
		for _, c := range o.config.Carriers {
			horizon = max(horizon, o.config.Messages.Validity+c.ReceiptTimeout+auditGrace)
		}
		audit, err := messages.New(o.pool).Audit(ctx, horizon)
		if err != nil {
			return nil, err
		}
		result.StuckPending, result.OrphanQueueEntries = audit.StuckPending, audit.OrphanQueue
		result.UnpaidMessages, result.UnrecordedDebits, result.PurgedMessages = audit.Unpaid, audit.Unrecorded, audit.Purged
		if result.BalanceMismatches+result.StuckPending+result.OrphanQueueEntries+result.UnpaidMessages+result.UnrecordedDebits > 0 {
			return result, errors.New("the books are not right")
		}
		return result, nil
	})
}

type adminRestoredCmd struct {
	Ahead int64 `help:"By how many ids; 0: 5,000 for each second since the newest message, and 10 million at least." placeholder:"N"`
}

type adminRestored struct {
	LastMessageID int64 `json:"last_message_id"`
	NextMessageID int64 `json:"next_message_id"`
}

// Run makes a restored database fit to go on with: no message_id and no webhook-id that a customer has seen comes again.
func (c *adminRestoredCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Ahead < 0 {
		return errors.New("--ahead must not be negative: ids only grow")
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		var result adminRestored
		err := o.changeBusy(ctx, func(tx pgx.Tx) (entry acts.Entry, err error) {
			result.LastMessageID, result.NextMessageID, err = messages.SkipIDs(ctx, tx, c.Ahead)
			return acts.Entry{Act: "database.restored", Subject: "message ids",
				Before: map[string]any{"next": result.LastMessageID + 1}, After: map[string]any{"next": result.NextMessageID}}, err
		})
		if err != nil {
			return nil, err
		}
		return result, nil
	})
}
