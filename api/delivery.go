package api

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

// deliveryView is one event and the state of its delivery.
type deliveryView struct {
	ID           int64   `json:"id"`
	WebhookID    string  `json:"webhook_id"`
	MessageID    *int64  `json:"message_id"` // null: the event is not about a message of the company
	InboundID    *int64  `json:"inbound_id,omitempty"`
	Event        string  `json:"event"`
	State        string  `json:"state"`
	AttemptCount int     `json:"attempt_count"`
	CreatedAt    string  `json:"created_at"`
	NextAt       *string `json:"next_at"`
	FinishedAt   *string `json:"finished_at"`
}

// deliveryDetail is a delivery with all its recorded attempts.
type deliveryDetail struct {
	deliveryView

	Body     string        `json:"body"`
	Attempts []attemptView `json:"attempts"`
}

// attemptView is one call to the endpoint, to the millisecond.
type attemptView struct {
	Number     int     `json:"number"`
	At         string  `json:"at"`
	Result     string  `json:"result"`
	Status     *int    `json:"status"`
	DurationMS int64   `json:"duration_ms"`
	Error      *string `json:"error"`
	Answer     *string `json:"answer"`
}

func viewOfDelivery(d *webhooks.Delivery) deliveryView {
	return deliveryView{ID: d.ID, WebhookID: d.WebhookID, MessageID: orNull(d.MessageID), InboundID: orNull(d.InboundID),
		Event: d.Event, State: d.State, AttemptCount: len(d.Attempts),
		CreatedAt: timestamp(d.CreatedAt), NextAt: timestampOrNull(d.NextAt), FinishedAt: timestampOrNull(d.FinishedAt)}
}

func detailOfDelivery(d *webhooks.Delivery) deliveryDetail {
	detail := deliveryDetail{deliveryView: viewOfDelivery(d), Body: d.Body, Attempts: make([]attemptView, len(d.Attempts))}
	for i := range d.Attempts {
		a := &d.Attempts[i]
		detail.Attempts[i] = attemptView{Number: a.Number, At: precise(a.At), Result: a.Result, DurationMS: a.DurationMS,
			Error: orNull(a.Error), Answer: orNull(a.Answer())}
		if a.Status != 0 {
			detail.Attempts[i].Status = &a.Status
		}
	}
	return detail
}

// listDeliveries is GET /v1/webhook-deliveries.
func (a *API) listDeliveries(c *gin.Context) (none page[deliveryView], err error) {
	q := readQuery(c, deliveryList)
	filter := webhooks.Filter{State: q.state(), Event: q.event()}
	name, given := q.message()
	filter.Since = q.instant("since", sinceInvalid)
	if err := q.page(); err != nil {
		return none, err
	}
	ctx := c.Request.Context()
	if filter.MessageID = name.number; given && name.number == 0 {
		switch record, err := a.Lookup.ByULID(ctx, companyID(c), name.ulid); {
		case errors.Is(err, messages.ErrNotFound): // an unknown message has no deliveries
			return pageOf(q, nil, 0, nil, viewOfDelivery)
		case err != nil:
			return none, err
		default:
			filter.MessageID = record.ID
		}
	}
	rows, next, err := a.Webhooks.Deliveries(ctx, companyID(c), filter, q.before, q.limit)
	return pageOf(q, rows, next, err, viewOfDelivery)
}

// state returns the parameter state of deliveries.
func (q *query) state() string {
	switch text := q.Get("state"); text {
	case "", webhooks.StatePending, webhooks.StateDelivered, webhooks.StateFailed:
		return text
	}
	q.add(stateInvalid)
	return ""
}

// event returns the parameter event of deliveries.
func (q *query) event() string {
	switch text := q.Get("event"); text {
	case "", webhooks.Sent, webhooks.Failed, webhooks.Received, webhooks.LowBalance, webhooks.BatchFinished,
		webhooks.VerificationFinished:
		return text
	}
	q.add(eventInvalid)
	return ""
}

// message returns the parameter message_id of deliveries: one of a message's two ids.
func (q *query) message() (name messageName, given bool) {
	text := q.Get("message_id")
	if text == "" {
		return name, false
	}
	name, ok := nameOf(text)
	if !ok {
		q.add(messageIDInvalid)
	}
	return name, true
}

// getDelivery is GET /v1/webhook-deliveries/{id}.
func (a *API) getDelivery(c *gin.Context) (deliveryDetail, error) {
	return delivery(c.Request.Context(), c, a.Webhooks.Delivery)
}

// resendDelivery is POST /v1/webhook-deliveries/{id}/resend.
func (a *API) resendDelivery(c *gin.Context) (deliveryDetail, error) {
	ctx, cancel := background(c)
	defer cancel()
	return delivery(ctx, c, a.Webhooks.Resend)
}

// delivery returns the caller's delivery in the path, by its number or by the webhook-id that its receiver got.
func delivery(ctx context.Context, c *gin.Context, find func(context.Context, sms.CompanyID, int64) (webhooks.Delivery,
	error)) (deliveryDetail, error) {
	id, err := strconv.ParseInt(strings.TrimPrefix(c.Param("id"), "evt_"), 10, 64)
	if err != nil || id < 1 {
		return deliveryDetail{}, notFound
	}
	d, err := find(ctx, companyID(c), id)
	return detailOfDelivery(&d), err
}
