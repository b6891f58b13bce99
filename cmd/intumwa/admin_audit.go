package main

import (
	"context"
	"errors"
	"time"

	"intumwa/billing"
	"intumwa/messages/statistics"
)

// auditGrace is how late the sweeps may handle an expired message.
const auditGrace = 10 * time.Minute

type adminAuditCmd struct{}

// do proves the ledger: each balance is the sum of its ledger, each live message is paid, each payment has its
// messages, each pending message is on a queue or a list, the kept counts of reports are those of the messages, and
// purchases of orders and invoices are the same, with no number missing. It prints all findings, then fails if there is
// a fault.
func (adminAuditCmd) do(ctx context.Context, o *operator) (any, error) {
	companies, mismatches, err := billing.New(o.pool).Audit(ctx)
	if err != nil {
		return nil, err
	}
	horizon := o.config.Messages.Validity + auditGrace
	for _, c := range o.config.Carriers {
		horizon = max(horizon, o.config.Messages.Validity+c.ReceiptTimeout+auditGrace)
	}
	found, err := statistics.New(o.pool).Audit(ctx, horizon)
	if err != nil {
		return nil, err
	}
	sold, err := o.orders().Audit(ctx)
	if err != nil {
		return nil, err
	}
	if sold.Uninvoiced+sold.Unbooked+sold.Numbers+mismatches+found.StuckPending+found.OrphanQueue+found.Unpaid+
		found.Unrecorded+found.Reports > 0 {
		err = errors.New("ledger, balances, messages, reports or invoices do not agree")
	}
	return object{{"companies", companies}, {"balance_mismatches", mismatches}, {"stuck_pending", found.StuckPending},
		{"orphan_queue_entries", found.OrphanQueue},
		// purged is not a fault
		{"unpaid_messages", found.Unpaid}, {"unrecorded_debits", found.Unrecorded}, {"purged_messages", found.Purged},
		{"report_mismatches", found.Reports}, {"purchases_without_invoice", sold.Uninvoiced},
		{"invoices_without_purchase", sold.Unbooked}, {"invoice_number_faults", sold.Numbers},
		{"invoices_unqueued", optional{sold.Unqueued}}}, err // no fault either: issued before the eBMS was configured
}
