package api

import (
	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
)

// cancelledView is the response to a cancellation of a message or batch.
type cancelledView struct {
	ID              *ulid.ULID `json:"id,omitempty"`
	BatchID         *ulid.ULID `json:"batch_id,omitempty"`
	Cancelled       int64      `json:"cancelled"` // messages
	CreditsReturned int64      `json:"credits_returned"`
}

// cancelMessage is DELETE /v1/sms/{id}.
func (a *API) cancelMessage(c *gin.Context) (view cancelledView, err error) {
	record, err := a.messageNamed(c)
	if err != nil {
		return view, err
	}
	return a.cancel(c, messages.Queued{Company: caller(c).Company.ID, Message: record.ID}, cancelledView{ID: &record.ULID})
}

// cancelBatch is DELETE /v1/sms/batches/{batch_id}, and DELETE /v1/batches/{id}.
func (a *API) cancelBatch(c *gin.Context) (view cancelledView, err error) {
	batch, err := a.batchNamed(c)
	if err != nil {
		return view, err
	}
	return a.cancel(c, messages.Queued{Company: caller(c).Company.ID, Batch: batch.Key},
		cancelledView{BatchID: &batch.ULID})
}

// cancel stops the messages that no carrier has or may have, and returns how many those were. It continues when the
// client disconnects.
func (a *API) cancel(c *gin.Context, of messages.Queued, view cancelledView) (_ cancelledView, err error) {
	ctx, cancel := background(c)
	defer cancel()
	view.Cancelled, view.CreditsReturned, err = a.Cancel(ctx, of)
	return view, err
}
