package api

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"intumwa/sms"
	"intumwa/webhooks"
)

// Texts of a 422 of the list of deliveries.
const (
	textStateInvalid     = "The state must be pending, delivered or failed."
	textEventInvalid     = "The event must be sms.sent or sms.failed."
	textMessageIDInvalid = "The message_id must be a whole number above 0."
	textSinceInvalid     = "The since must be a date and time such as 2026-03-01T10:00:00+02:00."
)

// deliveryView is one event and how far telling it has come.
type deliveryView struct {
	ID           int64   `json:"id"`
	WebhookID    string  `json:"webhook_id"`
	MessageID    int64   `json:"message_id"`
	Event        string  `json:"event"`
	State        string  `json:"state"`
	AttemptCount int     `json:"attempt_count"`
	CreatedAt    string  `json:"created_at"`
	NextAt       *string `json:"next_at"`
	FinishedAt   *string `json:"finished_at"`
}

// deliveryPage is a page of deliveries.
type deliveryPage struct {
	Data       []deliveryView `json:"data"`
	NextCursor *string        `json:"next_cursor"`
}

// deliveryDetail is a delivery with every attempt that is kept.
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
	return deliveryView{ID: d.ID, WebhookID: d.WebhookID, MessageID: d.MessageID, Event: d.Event, State: d.State, AttemptCount: len(d.Attempts),
		CreatedAt: timestamp(d.CreatedAt), NextAt: optional(d.NextAt), FinishedAt: optional(d.FinishedAt)}
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
func (a *API) listDeliveries(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	query := c.Request.URL.Query()
	filter, limit, before, problems := readDeliveries(query)
	if !problems.none() {
		problems.refuseFirst(c)
		return
	}
	page, next, err := a.webhooks.Deliveries(c.Request.Context(), sms.CompanyID(company.ID), filter, before, limit)
	if err != nil {
		a.unavailable(c, "listing webhook deliveries", err)
		return
	}
	view := deliveryPage{Data: make([]deliveryView, len(page))}
	for i := range page {
		view.Data[i] = viewOfDelivery(&page[i])
	}
	if next > 0 {
		cursor := deliveryFilters.cursor(query, next)
		view.NextCursor = &cursor
	}
	write(c, http.StatusOK, view)
}

// readDeliveries reads the filters of the list. One that is given but empty is as none.
func readDeliveries(query url.Values) (f webhooks.Filter, limit int, before int64, p problems) {
	limit = defaultLimit
	if text := query.Get("state"); text != "" {
		switch text {
		case webhooks.StatePending, webhooks.StateDelivered, webhooks.StateFailed:
			f.State = text
		default:
			p.add("state", textStateInvalid)
		}
	}
	if text := query.Get("event"); text != "" {
		switch text {
		case webhooks.Sent, webhooks.Failed:
			f.Event = text
		default:
			p.add("event", textEventInvalid)
		}
	}
	if text := query.Get("message_id"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			p.add("message_id", textMessageIDInvalid)
		}
		f.MessageID = id
	}
	var ok bool
	if f.Since, ok = instant(query.Get("since")); !ok {
		p.add("since", textSinceInvalid)
	}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			p.add("limit", textLimitInvalid)
		}
		limit = n
	}
	if text := query.Get("cursor"); text != "" {
		if before, ok = deliveryFilters.read(query, text); !ok {
			p.add("cursor", textCursorInvalid)
		}
	}
	return f, limit, before, p
}

// deliveryNamed reads the id of a delivery: the number, or the webhook-id that
// its receiver got.
func deliveryNamed(c *gin.Context) (int64, bool) {
	id, err := strconv.ParseInt(strings.TrimPrefix(c.Param("id"), "evt_"), 10, 64)
	return id, err == nil && id > 0
}

// getDelivery is GET /v1/webhook-deliveries/{id}.
func (a *API) getDelivery(c *gin.Context) {
	a.delivery(c, "looking up a webhook delivery", func(company sms.CompanyID, id int64) (webhooks.Delivery, error) {
		return a.webhooks.Delivery(c.Request.Context(), company, id)
	})
}

// resendDelivery is POST /v1/webhook-deliveries/{id}/resend.
func (a *API) resendDelivery(c *gin.Context) {
	a.delivery(c, "re-sending a webhook delivery", func(company sms.CompanyID, id int64) (webhooks.Delivery, error) {
		return a.webhooks.Resend(background(c), company, id)
	})
}

// delivery answers with one of the caller's deliveries; another's is not there.
func (a *API) delivery(c *gin.Context, doing string, find func(sms.CompanyID, int64) (webhooks.Delivery, error)) {
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	id, ok := deliveryNamed(c)
	if !ok {
		say(c, http.StatusNotFound, textNotFound)
		return
	}
	d, err := find(sms.CompanyID(company.ID), id)
	switch {
	case errors.Is(err, webhooks.ErrNotFound):
		say(c, http.StatusNotFound, textNotFound)
	case err != nil:
		a.unavailable(c, doing, err)
	default:
		write(c, http.StatusOK, detailOfDelivery(&d))
	}
}
