package api

import (
	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/sms"
)

// batchView is a batch as its owner sees it (rule choices 9.2).
type batchView struct {
	BatchID         ulid.ULID `json:"batch_id"`
	Status          string    `json:"status"` // always queued, rule api 2.2
	Sender          string    `json:"sender"`
	RecipientsCount int       `json:"recipients_count"`
	ItemCount       int       `json:"item_count"`
	Counts          counts    `json:"counts"`
	CreatedAt       string    `json:"created_at"`
	State           string    `json:"state"`

	// Only if they were given.
	SendAt   *string `json:"send_at,omitempty"`
	ExpireAt *string `json:"expire_at,omitempty"`

	LeftOut map[string]int `json:"left_out,omitempty"` // of a campaign, by reason
}

// counts are a batch's messages by status.
type counts struct {
	Pending int `json:"pending"`
	Sent    int `json:"sent"`
	Failed  int `json:"failed"`
}

// getBatch is GET /v1/sms/batches/{batch_id}.
func (a *API) getBatch(c *gin.Context) (batchView, error) {
	batch, err := a.batchNamed(c)
	return batchView{
		BatchID: batch.ULID, Status: "queued", Sender: batch.Sender, RecipientsCount: batch.Recipients,
		ItemCount: batch.Segments,
		Counts:    counts{Pending: batch.Counts[sms.Pending], Sent: batch.Counts[sms.Sent], Failed: batch.Counts[sms.Failed]},
		CreatedAt: timestamp(batch.CreatedAt), State: batch.State(), SendAt: timestampIfAny(batch.SendAt),
		ExpireAt: timestampIfAny(batch.ExpireAt), LeftOut: batch.LeftOut,
	}, err
}

// batchNamed finds the company's batch in the path.
func (a *API) batchNamed(c *gin.Context) (messages.BatchRecord, error) {
	id, err := ulid.ParseStrict(c.Param("id"))
	if err != nil {
		return messages.BatchRecord{}, notFound
	}
	return a.Messages.BatchByULID(c.Request.Context(), companyID(c), id)
}
