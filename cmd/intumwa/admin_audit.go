package main

import (
	"context"
	"errors"
	"time"

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

// do proves the books: balance = sum of the ledger, every live message paid, every payment with its messages, every
// pending message on somebody's list. It fails when anything is not as it should be, having printed what.
func (adminAuditCmd) do(ctx context.Context, o *operator) (any, error) {
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
}
