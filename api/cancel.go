package api

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
)

// cancelledView says what was cancelled: of a message or of a batch.
type cancelledView struct {
	ID              *ulid.ULID `json:"id,omitempty"`
	BatchID         *ulid.ULID `json:"batch_id,omitempty"`
	Cancelled       int64      `json:"cancelled"` // messages
	CreditsReturned int64      `json:"credits_returned"`
}

// cancelMessage is DELETE /v1/sms/{id}.
func (a *API) cancelMessage(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok || !noParameters(c) {
		return
	}
	name, ok := nameOf(c.Param("id"))
	if !ok {
		writeRefusal(c, notFound)
		return
	}
	record, err := a.messageNamed(c.Request.Context(), company, name)
	switch {
	case errors.Is(err, messages.ErrNotFound):
		writeRefusal(c, notFound)
	case err != nil:
		a.writeUnavailable(c, "looking up a message", err)
	default:
		a.cancel(c, messages.Queued{Company: company.ID, Message: record.ID}, cancelledView{ID: &record.ULID})
	}
}

// cancelBatch is DELETE /v1/sms/batches/{batch_id}, and DELETE /v1/batches/{id}.
func (a *API) cancelBatch(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok || !noParameters(c) {
		return
	}
	if batch, ok := a.batchNamed(c, company); ok {
		a.cancel(c, messages.Queued{Company: company.ID, Batch: batch.Key}, cancelledView{BatchID: &batch.ULID})
	}
}

// cancel stops what no carrier has or may have and responds with how much that was. Once begun it goes on whatever becomes
// of the client.
func (a *API) cancel(c *gin.Context, of messages.Queued, view cancelledView) {
	done, err := a.cancelQueued(background(c), of)
	if err != nil {
		a.writeUnavailable(c, "cancelling messages", err)
		return
	}
	view.Cancelled, view.CreditsReturned = done.Cancelled, done.Credits
	writeJSON(c, http.StatusOK, view)
}
