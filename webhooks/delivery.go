package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Delivery is the state of one event's delivery.
type Delivery struct {
	ID        int64
	WebhookID string // the webhook-id header of every attempt
	CompanyID int64
	MessageID int64 // 0: it is not about a message of the company
	InboundID int64 // of Received, the message from a handset; else 0
	Event     string
	State     string     // StatePending, StateDelivered or StateFailed
	NextAt    *time.Time // the next attempt; nil unless pending
	CreatedAt time.Time
	// FinishedAt is when it was delivered or given up; nil while pending.
	FinishedAt *time.Time
	Body       string
	Attempts   []Attempt // oldest first, those of re-sends included

	seq int64
}

// Attempt is one call to an endpoint.
type Attempt struct {
	Number     int       `json:"-"` // from 1
	At         time.Time `json:"at"`
	Status     int       `json:"status,omitempty"` // of the response; 0: none came
	Result     string    `json:"result"`           // 2xx 3xx 4xx 5xx timeout dns tls blocked refused other
	DurationMS int64     `json:"ms"`
	Error      string    `json:"error,omitempty"`   // why no response came
	Excerpt    string    `json:"excerpt,omitempty"` // beginning of the response's body, at most 1 KiB
}

// A delivery is a row of d, and of u until it succeeds.
const (
	deliveryColumns = `SELECT d.seq, d.company_id, d.id, d.at, d.phone_number, coalesce(d.data, ''), coalesce(d.client_reference, ''), u.id IS NOT NULL,
		CASE WHEN isfinite(u.due) THEN u.due END, u.given_up_at`
	deliveriesAll         = ` FROM webhook_deliveries d LEFT JOIN webhook_undelivered u ON u.company_id = d.company_id AND u.id = d.id`
	deliveriesUndelivered = ` FROM webhook_undelivered u JOIN webhook_deliveries d ON d.company_id = u.company_id AND d.id = u.id`
)

// DeliveriesOf returns the deliveries of a company's message. A message that emitted no
// event has none.
func (w *Webhooks) DeliveriesOf(ctx context.Context, company sms.CompanyID, messageID int64) ([]Delivery, error) {
	found, _, err := w.Deliveries(ctx, company, Filter{MessageID: messageID}, 0, idSpan)
	return found, err
}

// deliveries reads the deliveries that a query finds, and their attempts.
func (w *Webhooks) deliveries(ctx context.Context, query string, args ...any) ([]Delivery, error) {
	rows, err := w.lookups.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("reading webhook deliveries: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanDelivery)
	if err != nil {
		return nil, fmt.Errorf("reading webhook deliveries: %w", err)
	}
	if err := w.addAttempts(ctx, found); err != nil {
		return nil, err
	}
	return found, nil
}

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var j job
	var stands bool
	var due *time.Time
	if err := row.Scan(&d.seq, &d.CompanyID, &j.id, &j.at, &j.number, &j.data, &j.reference, &stands, &due, &d.FinishedAt); err != nil {
		return d, err
	}
	d.ID, d.WebhookID, d.Event = j.id, webhookID(j.id), eventName(j.id)
	switch d.Event {
	case Sent, Failed:
		d.MessageID = messageOf(j.id)
	case Received:
		d.InboundID = messageOf(j.id)
	}
	d.CreatedAt, d.Body = j.at, string(bodyOf(j.event()))
	switch {
	case stands && due == nil:
		d.State = StateFailed
	case stands:
		d.State, d.NextAt = StatePending, due
	default:
		d.State = StateDelivered // addAttempts finds when
	}
	return d, nil
}

// addAttempts reads the attempts of deliveries. The last one ended a delivery that is
// delivered.
func (w *Webhooks) addAttempts(ctx context.Context, found []Delivery) error {
	by := make(map[int64]*Delivery, len(found))
	seqs := make([]int64, len(found))
	for i := range found {
		seqs[i] = found[i].seq
		by[seqs[i]] = &found[i]
	}
	rows, err := w.lookups.Query(ctx, `
		SELECT seq, at, ms, status, result, coalesce(error, ''), coalesce(excerpt, '')
		FROM webhook_attempts WHERE seq = ANY($1) ORDER BY seq, at`, seqs)
	if err != nil {
		return fmt.Errorf("reading webhook attempts: %w", err)
	}
	var seq int64
	var a Attempt
	_, err = pgx.ForEachRow(rows, []any{&seq, &a.At, &a.DurationMS, &a.Status, &a.Result, &a.Error, &a.Excerpt}, func() error {
		d := by[seq]
		a.Number = len(d.Attempts) + 1
		d.Attempts = append(d.Attempts, a)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading webhook attempts: %w", err)
	}
	for i := range found {
		d := &found[i]
		if n := len(d.Attempts); n > 0 && d.State == StateDelivered {
			ended := d.Attempts[n-1].At.Add(time.Duration(d.Attempts[n-1].DurationMS) * time.Millisecond)
			d.FinishedAt = &ended
		}
	}
	return nil
}

// Resend sends a company's delivery again at once, with the same body and webhook-id,
// and returns its new state. A finished delivery starts a new round of attempts, and
// its latest old attempts stay; a pending one is only brought forward. While the
// endpoint is switched off the delivery waits. ErrNotFound when the company has no
// such delivery.
func (w *Webhooks) Resend(ctx context.Context, company sms.CompanyID, deliveryID int64) (Delivery, error) {
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO webhook_undelivered AS u (company_id, id, due)
			SELECT company_id, id, now() FROM webhook_deliveries WHERE company_id = $1 AND id = $2
			ON CONFLICT (company_id, id) DO UPDATE SET due = least(u.due, now()), given_up_at = NULL,
				tries = CASE WHEN isfinite(u.due) THEN u.tries ELSE 0 END`, int64(company), deliveryID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, forgetAttempts+`d.company_id = $1 AND d.id = $2)`, int64(company), deliveryID)
		return err
	})
	if err != nil {
		return Delivery{}, fmt.Errorf("re-sending webhook delivery %d: %w", deliveryID, err)
	}
	d, err := w.Delivery(ctx, company, deliveryID)
	if err != nil {
		return Delivery{}, fmt.Errorf("re-sending webhook delivery %d: %w", deliveryID, err)
	}
	w.Kick()
	return d, nil
}

// forgetAttempts deletes all but the latest attempts of the deliveries of a condition,
// so that repeated re-sends do not fill the disk.
const forgetAttempts = `
	DELETE FROM webhook_attempts WHERE ctid IN (
		SELECT a.ctid FROM webhook_deliveries d CROSS JOIN LATERAL (
			SELECT ctid FROM webhook_attempts WHERE seq = d.seq ORDER BY at DESC OFFSET 60) a
		WHERE `

const (
	RecoverMost = 50_000                 // deliveries of one call of Recover
	recoverPace = 400 * time.Microsecond // between their first attempts
)

// Recover sends again a company's deliveries that were given up, of events recorded at since or
// later, and returns how many: RecoverMost of them at most. They become due one after the other, so that new events do not wait behind them.
func (w *Webhooks) Recover(ctx context.Context, company sms.CompanyID, since time.Time) (resent int64, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := lockEndpoint(ctx, tx, company); err != nil { // two recoveries of a company take turns
			return err
		}
		done, err := tx.Exec(ctx, `
			WITH failed AS MATERIALIZED (
				SELECT u.id, row_number() OVER (ORDER BY u.id) AS place
				FROM webhook_undelivered u JOIN webhook_deliveries d ON d.company_id = u.company_id AND d.id = u.id
				WHERE u.company_id = $1 AND u.due = 'infinity' AND d.at >= $2 ORDER BY u.id LIMIT $3
			)
			UPDATE webhook_undelivered u SET due = now() + failed.place * $4::interval, tries = 0, given_up_at = NULL
			FROM failed WHERE u.company_id = $1 AND u.id = failed.id AND u.due = 'infinity'`, int64(company), since, RecoverMost, recoverPace)
		resent = done.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("recovering webhooks of company %d: %w", company, err)
	}
	w.Kick()
	return resent, nil
}
