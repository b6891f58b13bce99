package webhooks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
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
	Body       string    // "" of a callback
	Attempts   []Attempt // oldest first, including re-sends
}

// A delivery's states in pages and in the API.
const (
	StatePending   = "pending"
	StateDelivered = "delivered"
	StateFailed    = "failed" // permanently: the last attempt failed

	StateFetched = "fetched" // of Naming: no endpoint gets it, the company can fetch it
)

// deliveryColumns are the columns of d: webhook_deliveries, one of its partitions, or webhook_called.
const deliveryColumns = `SELECT d.company_id, d.id, d.at, d.phone_number, coalesce(d.data, ''), coalesce(d.labels, ''),
	d.delivered,
	CASE WHEN isfinite(d.due) THEN d.due END, d.given_up_at, coalesce(d.attempts, '[]')`

// pendingDelivery is true for a delivery d that is neither delivered nor given up.
const pendingDelivery = `NOT d.delivered AND d.due <> 'infinity'`

func (w *Webhooks) deliveries(ctx context.Context, query string, args ...any) ([]Delivery, error) {
	return postgres.All(ctx, w.lookups, "reading webhook deliveries", scanDelivery, query, args...)
}

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var e storedEvent
	var delivered bool
	var due *time.Time
	if err := row.Scan(&e.company, &e.id, &e.at, &e.number, &e.data, &e.labels, &delivered, &due, &d.FinishedAt,
		&d.Attempts); err != nil {
		return d, err
	}
	finished, attempts := d.FinishedAt, d.Attempts
	d = deliveryOf(&e)
	d.FinishedAt, d.Attempts = finished, attempts
	for i := range d.Attempts {
		d.Attempts[i].Number = i + 1
	}
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

// deliveryOf is a delivery of an event, without its attempts.
func deliveryOf(e *storedEvent) Delivery {
	d := Delivery{ID: e.id, WebhookID: webhookID(e.id), CompanyID: companyOf(e.company), Event: eventName(e.id),
		CreatedAt: e.at, State: StateFetched}
	switch d.Event {
	case Sent, Failed, dlrSubmitted, dlrFinal:
		d.MessageID = messageOf(e.id)
	case Received:
		d.InboundID = messageOf(e.id)
	}
	if e.company > 0 {
		d.Body = string(appendBody(nil, e))
	}
	return d
}
