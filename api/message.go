package api

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/messages/lookup"
)

// messageView is a message as its company sees it (rule choices 9.2).
type messageView struct {
	ID            ulid.ULID  `json:"id"`
	MessageID     int64      `json:"message_id"` // the number used in webhooks
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

	// Only if they were given.
	ClientReference string  `json:"client_reference,omitempty"`
	CostCenter      string  `json:"cost_center,omitempty"`
	SendAt          *string `json:"send_at,omitempty"`
	ExpireAt        *string `json:"expire_at,omitempty"`
}

// moment is one entry of a timeline, in milliseconds.
type moment struct {
	At     string  `json:"at"`
	Event  string  `json:"event"`
	Detail *string `json:"detail"`
}

func viewOf(r lookup.Record, j lookup.History) messageView {
	view := messageView{
		ID: r.ULID, MessageID: r.ID, BatchID: r.BatchULID, Status: r.Status.String(), To: string(r.Number), Sender: r.Sender,
		Message: r.Body, Encoding: r.Encoding.String(), Segments: r.Segments, Test: r.Test, Carrier: r.Carrier,
		FailureReason: orNull(r.FailureReason), CreatedAt: timestamp(r.CreatedAt), SentAt: timestampOrNull(r.SentAt),
		FailedAt:        timestampOrNull(r.FailedAt),
		ClientReference: r.Reference, CostCenter: r.CostCenter, SendAt: timestampOrNull(r.SendAt),
		ExpireAt: timestampOrNull(r.ExpireAt),
	}
	for _, m := range lookup.Timeline(r, j) {
		view.Timeline = append(view.Timeline, moment{At: precise(m.At), Event: m.Event, Detail: orNull(m.Detail)})
	}
	return view
}

func precise(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-07:00") }

// messageNamed finds the company's message in the path, by either id.
func (a *API) messageNamed(c *gin.Context) (lookup.Record, error) {
	name, ok := nameOf(c.Param("id"))
	switch ctx := c.Request.Context(); {
	case !ok:
		return lookup.Record{}, notFound
	case name.number != 0:
		return a.Lookup.ByID(ctx, companyID(c), name.number)
	default:
		return a.Lookup.ByULID(ctx, companyID(c), name.ulid)
	}
}

// getMessage is GET /v1/sms/{id}: by the ULID, or the number used in webhooks.
func (a *API) getMessage(c *gin.Context) (view messageView, err error) {
	record, err := a.messageNamed(c)
	if err != nil {
		return view, err
	}
	history, err := a.Lookup.HistoryOf(c.Request.Context(), record.ID)
	return viewOf(record, history), err
}
