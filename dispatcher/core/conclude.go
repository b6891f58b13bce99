package core

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/submission"
	"intumwa/smppserver/binds"
	"intumwa/sms"
	"intumwa/webhooks"
)

// Verdict returns the verdict on a message by its submit records, or nil while it is pending.
func Verdict(id int64, segments int, records []submission.Record) *messages.Final {
	status, at, reason := submission.Verdict(segments, records)
	if status == sms.Pending {
		return nil
	}
	return &messages.Final{MessageID: id, Status: status, At: at, Reason: reason}
}

// Conclude makes verdicts final, changes the rows of the outbox, and enqueues the webhooks and
// refunds of the verdicts in the same transaction.
func (c *Core) Conclude(ctx context.Context, tx pgx.Tx, store *messages.Store, finals []messages.Final,
	rows messages.Rows) ([]messages.Settled, error) {
	settled, refunded, err := Conclude(ctx, tx, store, c.Webhooks, c.Refunds, finals, rows)
	if refunded > 0 {
		c.Metrics.Refunds.Add(float64(refunded))
	}
	return settled, err
}

// Conclude works without a dispatcher. refunds reports whether a failed live message
// is refunded; refunded is how many were.
func Conclude(ctx context.Context, tx pgx.Tx, store *messages.Store, hooks *webhooks.Webhooks,
	refunds func(messages.Settled) bool,
	finals []messages.Final, rows messages.Rows) (settled []messages.Settled, refunded int, err error) {
	if settled, err = store.Finish(ctx, tx, finals, rows); err == nil {
		err = hooks.Submitted(ctx, tx, rows.Told)
	}
	if err != nil || len(settled) == 0 {
		return nil, 0, err
	}
	events, debits := Follows(settled, refunds)
	if err := hooks.Enqueue(ctx, tx, events); err != nil {
		return nil, 0, err
	}
	if err := binds.Add(ctx, tx, ReceiptsFor(settled)); err != nil {
		return nil, 0, err
	}
	if refunded, err = billing.Refund(ctx, tx, debits); err != nil {
		return nil, 0, err
	}
	return settled, refunded, nil
}

// Follows returns the webhook events and refunds of messages that became final. refunds
// reports whether a failed live message is refunded.
func Follows(settled []messages.Settled, refunds func(messages.Settled) bool) (events []webhooks.Event,
	debits []billing.Debit) {
	events = make([]webhooks.Event, 0, len(settled))
	for i := range settled {
		m := &settled[i]
		if m.CompanyID != 0 {
			e := webhooks.Event{CompanyID: m.CompanyID, MessageID: m.ID, Name: webhooks.Failed, PhoneNumber: string(m.Number),
				At: m.At, Reference: m.Reference, CostCenter: m.CostCenter, Unsubmitted: m.Unsubmitted,
				Callback: m.Channel == messages.Kannel}
			if m.Status == sms.Sent {
				e.Name = webhooks.Sent
			}
			events = append(events, e)
		}
		switch {
		case m.Status != sms.Failed, m.Carrier == sms.SandboxCarrier: // sandbox messages are free
		case m.CompanyID != 0 && (m.Test || refunds(*m)):
			debits = append(debits, billing.Debit{CompanyID: m.CompanyID, Amount: int64(m.Segments), Ref: m.ULID, Test: m.Test})
		}
	}
	return events, debits
}

// Receipts that a submit_sm may ask for (SMPP 3.4, 5.2.17), as messages.Origin has them.
const (
	ReceiptAlways    = 1
	ReceiptOfFailure = 2
	ReceiptOfSuccess = 3
)

// ReceiptsFor returns the receipts for customers' binds of messages that became final.
func ReceiptsFor(settled []messages.Settled) (receipts []binds.Delivery) {
	for i := range settled {
		m := &settled[i]
		sent := m.Status == sms.Sent
		if m.Registered == ReceiptAlways || m.Registered == ReceiptOfFailure && !sent || m.Registered == ReceiptOfSuccess &&
			sent {
			receipts = append(receipts, binds.Delivery{Account: m.SMPPAccount, Bind: m.SMPPBind, Number: string(m.Number),
				Address: m.Sender, ULID: m.ULID,
				MessageID: m.ID, Echo: m.Echo, Sent: &sent, Reason: m.Reason, SubmittedAt: m.CreatedAt, At: m.At})
		}
	}
	return receipts
}

// Refunds applies billing.refund to a failed live message.
func (c *Core) Refunds(m messages.Settled) bool { return c.Opts.Refund.Pays(m) }

// Report counts and logs messages that became final.
func (c *Core) Report(settled []messages.Settled) {
	for i := range settled {
		m := &settled[i]
		c.Metrics.final.WithLabelValues(m.Carrier, m.Status.String(), reasonClass(m)).Inc()
		c.Metrics.endToEnd.WithLabelValues(m.Carrier).Observe(max(m.At.Sub(m.From).Seconds(), 0))
		c.logFinal(m)
	}
}

// reasonClass is the metric label of a failure's reason.
func reasonClass(m *messages.Settled) string {
	switch {
	case m.Status == sms.Sent:
		return "none"
	case m.Reason == submission.ReasonExpired || m.Reason == submission.ReasonNoReceipt ||
		m.Reason == submission.ReasonNoAnswer || m.Reason == submission.ReasonOptedOut ||
		m.Reason == submission.ReasonClosed:
		return m.Reason
	case strings.HasPrefix(m.Reason, "ESME_"):
		return "refused"
	case strings.HasPrefix(m.Reason, "smpp: "): // a field that SMPP cannot carry
		return "unsendable"
	}
	return "receipt"
}

func (c *Core) logFinal(m *messages.Settled) {
	if m.Status == sms.Failed {
		c.Log.Info("message failed", "event", "message_failed", "id", m.ULID, "message_id", m.ID, "carrier", m.Carrier,
			"number", m.Number.Masked(), "reason", m.Reason)
		return
	}
	if !c.Log.Enabled(context.Background(), slog.LevelDebug) { // the arguments cost memory
		return
	}
	c.Log.Debug("message sent", "id", m.ULID, "message_id", m.ID, "carrier", m.Carrier)
}

// DecidedAtOnce is the most messages that one transaction of a task decides.
const DecidedAtOnce = 5_000

// Finish concludes the messages that find returns, in one transaction.
func (c *Core) Finish(ctx context.Context, doing string, find func(pgx.Tx) ([]messages.Final, error)) error {
	var settled []messages.Settled
	err := postgres.InTx(ctx, c.Hot, func(tx pgx.Tx) error {
		settled = nil // after a retry
		finals, err := find(tx)
		if err != nil || len(finals) == 0 {
			return err
		}
		settled, err = c.Conclude(ctx, tx, c.Carrying.Messages, finals, SentRows(finals))
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	c.Report(settled)
	return nil
}

// SentRows takes the messages whose verdict is sent off the outbox: they are not sent again.
func SentRows(finals []messages.Final) (rows messages.Rows) {
	for _, f := range finals {
		if f.Status == sms.Sent {
			rows.Leave, rows.Told = append(rows.Leave, messages.Claim{MessageID: f.MessageID}), append(rows.Told, f.MessageID)
		}
	}
	return rows
}
