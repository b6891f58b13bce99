package dispatcher

import (
	"context"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/messages"
	"intumwa/messages/submission"
	"intumwa/sms"
	"intumwa/webhooks"
)

// conclude makes verdicts final, changes the rows of the outbox, and enqueues the webhooks and
// refunds of the verdicts in the same transaction.
func (d *Dispatcher) conclude(ctx context.Context, tx pgx.Tx, store *messages.Store, finals []messages.Final, rows messages.Rows) ([]messages.Settled, error) {
	settled, refunded, err := conclude(ctx, tx, store, d.webhooks, d.refunds, finals, rows)
	if refunded > 0 {
		d.metrics.refunds.Add(float64(refunded))
	}
	return settled, err
}

// conclude works without a dispatcher. refunds reports whether a failed live message
// is refunded; refunded is how many were.
func conclude(ctx context.Context, tx pgx.Tx, store *messages.Store, hooks *webhooks.Webhooks, refunds func(messages.Settled) bool,
	finals []messages.Final, rows messages.Rows) (settled []messages.Settled, refunded int, err error) {
	settled, err = store.Finish(ctx, tx, finals, rows)
	if err != nil || len(settled) == 0 {
		return nil, 0, err
	}
	events, debits := follows(settled, refunds)
	if err := hooks.Enqueue(ctx, tx, events); err != nil {
		return nil, 0, err
	}
	if refunded, err = billing.Refund(ctx, tx, debits); err != nil {
		return nil, 0, err
	}
	return settled, refunded, nil
}

// follows returns the webhook events and refunds of messages that became final. refunds
// reports whether a failed live message is refunded.
func follows(settled []messages.Settled, refunds func(messages.Settled) bool) (events []webhooks.Event, debits []billing.Debit) {
	events = make([]webhooks.Event, 0, len(settled))
	for i := range settled {
		m := &settled[i]
		if m.CompanyID != 0 {
			e := webhooks.Event{CompanyID: m.CompanyID, MessageID: m.ID, Name: webhooks.Failed, PhoneNumber: string(m.Number), At: m.At, Reference: m.Reference}
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

// payOwed pays the refunds that settling put off because another transaction had
// locked the balance.
func (d *Dispatcher) payOwed(ctx context.Context) error {
	refunded, held, err := billing.New(d.pool).PayOwed(ctx)
	if err != nil {
		return err
	}
	d.metrics.refunds.Add(float64(refunded))
	if was := d.refundsHeld; (held > 0) != was {
		d.refundsHeld = !was
		if held > 0 {
			d.log.Warn("refunds wait: another transaction has locked their balances or test pools", "event", "refunds_wait", "held", held)
		} else {
			d.log.Info("refunds no longer wait for locked balances or test pools", "event", "refunds_resumed")
		}
	}
	return nil
}

// refunds applies billing.refund to a failed live message.
func (d *Dispatcher) refunds(m messages.Settled) bool { return d.opts.Refund.pays(m) }

// pays reports whether a failed live message is refunded.
func (r Refund) pays(m messages.Settled) bool {
	switch r {
	case RefundFailed:
		return true
	case RefundUnsubmitted:
		return m.Unsubmitted && (m.Reason == submission.ReasonExpired || m.Reason == submission.ReasonOptedOut)
	}
	return false
}

// report counts and logs messages that became final.
func (d *Dispatcher) report(settled []messages.Settled) {
	for i := range settled {
		m := &settled[i]
		d.metrics.final.WithLabelValues(m.Carrier, m.Status.String(), reasonClass(m)).Inc()
		d.metrics.endToEnd.WithLabelValues(m.Carrier).Observe(max(m.At.Sub(m.From).Seconds(), 0))
		d.logFinal(m)
	}
}

// reasonClass is the metric label of a failure's reason.
func reasonClass(m *messages.Settled) string {
	switch {
	case m.Status == sms.Sent:
		return "none"
	case m.Reason == submission.ReasonExpired || m.Reason == submission.ReasonNoReceipt || m.Reason == submission.ReasonNoAnswer || m.Reason == submission.ReasonOptedOut:
		return m.Reason
	case strings.HasPrefix(m.Reason, "ESME_"):
		return "refused"
	case strings.HasPrefix(m.Reason, "smpp: "): // a field that SMPP cannot carry
		return "unsendable"
	}
	return "receipt"
}

func (d *Dispatcher) logFinal(m *messages.Settled) {
	if m.Status == sms.Failed {
		d.log.Info("message failed", "event", "message_failed", "id", m.ULID, "message_id", m.ID, "carrier", m.Carrier, "number", m.Number.Masked(), "reason", m.Reason)
		return
	}
	if !d.log.Enabled(context.Background(), slog.LevelDebug) { // the arguments cost memory
		return
	}
	d.log.Debug("message sent", "id", m.ULID, "message_id", m.ID, "carrier", m.Carrier)
}
