package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Delivery is what became of one event.
type Delivery struct {
	ID        int64
	WebhookID string // the webhook-id header of every attempt
	CompanyID int64
	MessageID int64
	Event     string
	State     string     // StatePending, StateDelivered or StateFailed
	Round     int        // attempts finished since the event, or since it was last sent again by hand
	NextAt    *time.Time // the next attempt; nil unless pending
	CreatedAt time.Time
	// FinishedAt is when it was delivered or given up; nil while pending.
	FinishedAt *time.Time
	Body       string
	Attempts   []Attempt // oldest first, re-sends included
}

// Attempt is one call to an endpoint.
type Attempt struct {
	Number     int       `json:"-"` // from 1
	At         time.Time `json:"at"`
	Status     int       `json:"status,omitempty"` // of the answer; 0: none came
	Result     string    `json:"result"`           // 2xx 3xx 4xx 5xx timeout dns tls blocked refused other
	DurationMS int64     `json:"ms"`
	Error      string    `json:"error,omitempty"`   // why no answer came
	Excerpt    string    `json:"excerpt,omitempty"` // beginning of the answer's body, at most 1 KiB
}

const deliveryColumns = `id, company_id, state, tries, next_at, created_at, finished_at, body, attempts`

// DeliveriesOf returns the deliveries of messages, in order of message id. A
// message that emitted nothing has none.
func (w *Webhooks) DeliveriesOf(ctx context.Context, messageIDs ...int64) ([]Delivery, error) {
	ids := make([]int64, 0, 2*len(messageIDs))
	for _, m := range messageIDs {
		for _, name := range []string{Sent, Failed} {
			if id, err := deliveryID(m, name); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return w.deliveries(ctx, `SELECT `+deliveryColumns+` FROM webhook_deliveries WHERE id = ANY($1) ORDER BY id`, ids)
}

func (w *Webhooks) deliveries(ctx context.Context, query string, args ...any) ([]Delivery, error) {
	rows, err := w.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("reading webhook deliveries: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanDelivery)
	if err != nil {
		return nil, fmt.Errorf("reading webhook deliveries: %w", err)
	}
	return found, nil
}

func scanDelivery(row pgx.CollectableRow) (Delivery, error) {
	var d Delivery
	var s state
	var next time.Time
	var attempts []byte
	if err := row.Scan(&d.ID, &d.CompanyID, &s, &d.Round, &next, &d.CreatedAt, &d.FinishedAt, &d.Body, &attempts); err != nil {
		return d, err
	}
	if err := json.Unmarshal(attempts, &d.Attempts); err != nil {
		return d, fmt.Errorf("delivery %d: reading its attempts: %w", d.ID, err)
	}
	for i := range d.Attempts {
		d.Attempts[i].Number = i + 1
	}
	d.WebhookID, d.MessageID, d.Event, d.State = webhookID(d.ID), messageOf(d.ID), eventOf(d.ID), s.String()
	if s == pending {
		d.NextAt = &next
	}
	return d, nil
}

// newRound begins another round of attempts, at once. Of the rounds before, the
// latest 60 attempts are kept: whoever sends again and again fills no disk.
const newRound = `state = 0, tries = 0, next_at = now(), finished_at = NULL,
	attempts = CASE WHEN jsonb_array_length(d.attempts) <= 60 THEN d.attempts ELSE (
		SELECT jsonb_agg(a.attempt ORDER BY a.n) FROM jsonb_array_elements(d.attempts) WITH ORDINALITY AS a(attempt, n)
		WHERE a.n > jsonb_array_length(d.attempts) - 60) END`

// Resend sends a company's delivery again, by hand: at once, with the same body
// and webhook-id. A finished one starts a new round of attempts; a pending one
// is only brought forward. ErrNotFound when the company has no such delivery.
// It answers the delivery as it is then. While the endpoint is switched off it
// waits.
func (w *Webhooks) Resend(ctx context.Context, company sms.CompanyID, deliveryID int64) (Delivery, error) {
	again, err := w.deliveries(ctx, `
		UPDATE webhook_deliveries d SET `+newRound+`
		WHERE id = $1 AND company_id = $2 AND state <> 0
		RETURNING `+deliveryColumns, deliveryID, int64(company))
	if err == nil && len(again) == 0 {
		again, err = w.deliveries(ctx, `
			UPDATE webhook_deliveries SET next_at = least(next_at, now())
			WHERE id = $1 AND company_id = $2 AND state + 0 = 0
			RETURNING `+deliveryColumns, deliveryID, int64(company))
	}
	if err == nil && len(again) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Delivery{}, fmt.Errorf("re-sending webhook delivery %d: %w", deliveryID, err)
	}
	w.Kick()
	return again[0], nil
}
