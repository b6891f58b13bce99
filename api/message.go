package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/sms"
)

// messageView is a message as its owner sees it (rule choices 9.2).
type messageView struct {
	ID            ulid.ULID  `json:"id"`
	MessageID     int64      `json:"message_id"` // of the webhooks
	BatchID       *ulid.ULID `json:"batch_id"`
	Status        string     `json:"status"`
	To            string     `json:"to"`
	Sender        string     `json:"sender"`
	Message       string     `json:"message"`
	Encoding      string     `json:"encoding"`
	Segments      int        `json:"segments"`
	Test          bool       `json:"test"`
	Carrier       string     `json:"carrier"`
	FailureReason *string    `json:"failure_reason"`
	CreatedAt     string     `json:"created_at"`
	SentAt        *string    `json:"sent_at"`
	FailedAt      *string    `json:"failed_at"`
	Timeline      []moment   `json:"timeline"`
}

// moment is one entry of a timeline, to the millisecond.
type moment struct {
	At     string  `json:"at"`
	Event  string  `json:"event"`
	Detail *string `json:"detail"`
}

func viewOf(r messages.Record, j messages.Journey) messageView {
	view := messageView{
		ID: r.ULID, MessageID: r.ID, BatchID: r.BatchULID, Status: r.Status.String(), To: string(r.Number), Sender: r.Sender,
		Message: r.Body, Encoding: r.Encoding.String(), Segments: r.Segments, Test: r.Test, Carrier: r.Carrier,
		FailureReason: orNull(r.FailureReason), CreatedAt: timestamp(r.CreatedAt), SentAt: optional(r.SentAt), FailedAt: optional(r.FailedAt),
	}
	for _, m := range messages.Timeline(r, j) {
		view.Timeline = append(view.Timeline, moment{At: precise(m.At), Event: m.Event, Detail: orNull(m.Detail)})
	}
	return view
}

func precise(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-07:00") }

// getMessage is GET /v1/sms/{id}.
func (a *API) getMessage(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	id, err := ulid.ParseStrict(c.Param("id"))
	if err != nil {
		say(c, http.StatusNotFound, textNotFound)
		return
	}
	ctx := c.Request.Context()
	record, err := a.messages.ByULID(ctx, sms.CompanyID(company.ID), id)
	if errors.Is(err, messages.ErrNotFound) {
		say(c, http.StatusNotFound, textNotFound)
		return
	}
	if err != nil {
		a.unavailable(c, "looking up a message", err)
		return
	}
	journey, err := a.messages.JourneyOf(ctx, record.ID)
	if err != nil {
		a.unavailable(c, "looking up a message", err)
		return
	}
	write(c, http.StatusOK, viewOf(record, journey))
}
