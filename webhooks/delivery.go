package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Delivery is the state of one event's delivery.
type Delivery struct {
	ID        int64
	WebhookID string // the webhook-id header of every attempt
	CompanyID int64
	MessageID int64 // 0: not about one of the company's messages
	InboundID int64 // of Received, the message from a handset; else 0
	Event     string
	State     string     // StatePending, StateDelivered or StateFailed
	NextAt    *time.Time // the next attempt; nil unless pending
	CreatedAt time.Time
	// FinishedAt is when the delivery was delivered or given up; nil while pending.
	FinishedAt *time.Time
	Body       string
	Attempts   []Attempt // oldest first, including re-sends
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

// deliveryColumns are the columns of d: webhook_deliveries, one of its partitions, or webhook_called.
const deliveryColumns = `SELECT d.company_id, d.id, d.at, d.phone_number, coalesce(d.data, ''), coalesce(d.client_reference, ''), d.delivered,
	CASE WHEN isfinite(d.due) THEN d.due END, d.given_up_at, coalesce(d.attempts, '[]')`

// pendingDelivery is true for a delivery d that is neither delivered nor given up.
const pendingDelivery = `NOT d.delivered AND d.due <> 'infinity'`

// DeliveriesOf returns the deliveries of a company's message: none if it emitted no event.
func (w *Webhooks) DeliveriesOf(ctx context.Context, company sms.CompanyID, messageID int64) ([]Delivery, error) {
	found, _, err := w.Deliveries(ctx, company, Filter{MessageID: messageID}, 0, idSpan)
	return found, err
}

func (w *Webhooks) deliveries(ctx context.Context, query string, args ...any) ([]Delivery, error) {
	return postgres.All(ctx, w.lookups, "reading webhook deliveries", scanDelivery, query, args...)
}

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var j job
	var delivered bool
	var due *time.Time
	if err := row.Scan(&d.CompanyID, &j.id, &j.at, &j.number, &j.data, &j.reference, &delivered, &due, &d.FinishedAt, &d.Attempts); err != nil {
		return d, err
	}
	for i := range d.Attempts {
		d.Attempts[i].Number = i + 1
	}
	d.ID, d.WebhookID, d.Event = j.id, webhookID(j.id), eventName(j.id)
	switch d.Event {
	case Sent, Failed:
		d.MessageID = messageOf(j.id)
	case Received:
		d.InboundID = messageOf(j.id)
	}
	d.CreatedAt, d.Body = j.at, string(appendBody(nil, &j))
	switch {
	case !delivered && due == nil:
		d.State = StateFailed
	case !delivered:
		d.State, d.NextAt = StatePending, due
	default:
		d.State = StateDelivered
		if n := len(d.Attempts); n > 0 {
			last := d.Attempts[n-1]
			ended := last.At.Add(time.Duration(last.DurationMS) * time.Millisecond)
			d.FinishedAt = &ended
		}
	}
	return d, nil
}

// Resend sends a company's delivery again at once, with the same body and webhook-id, and returns its new state. A
// finished delivery starts a new round of attempts and keeps its latest old ones; a pending one is only brought
// forward. While the endpoint is inactive the delivery waits. Resend returns ErrNotFound if the company has no such
// delivery. It gives way to a concurrent change of the delivery (postgres.GaveWay); the caller then repeats its
// transaction.
func (w *Webhooks) Resend(ctx context.Context, company sms.CompanyID, deliveryID int64) (Delivery, error) {
	_, err := w.pool.Exec(ctx, `
		UPDATE webhook_deliveries SET delivered = false, due = least(due, now()), given_up_at = NULL,
			tries = CASE WHEN isfinite(due) THEN tries ELSE 0 END,
			attempts = (SELECT json_agg(a.attempt ORDER BY a.n) FROM json_array_elements(attempts) WITH ORDINALITY AS a(attempt, n)
				WHERE a.n > json_array_length(attempts) - $3)
		WHERE company_id = $1 AND id = $2`, int64(company), deliveryID, attemptsKept)
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

// attemptsKept is how many attempts a re-send keeps: repeated re-sends must not fill the disk.
const attemptsKept = 60

const (
	RecoverMost = 50_000                 // deliveries of one call of Recover
	recoverPace = 400 * time.Microsecond // between their first attempts
)

// Recover sends again a company's given-up deliveries of events recorded since a time, RecoverMost at most, and returns
// how many. They become due one after another, so new events do not queue behind them.
func (w *Webhooks) Recover(ctx context.Context, company sms.CompanyID, since time.Time) (resent int64, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := lockEndpoint(ctx, tx, company); err != nil { // recoveries of one company take turns
			return err
		}
		done, err := tx.Exec(ctx, `
			WITH failed AS MATERIALIZED (
				SELECT id, row_number() OVER (ORDER BY id) AS place FROM webhook_undelivered
				WHERE company_id = $1 AND due = 'infinity' AND at >= $2 ORDER BY id LIMIT $3
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
