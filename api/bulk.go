package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
)

// sendBulk is POST /v1/sms/bulk (rule api 4.2).
func (a *API) sendBulk(c *gin.Context) {
	handleSend(a, c, a.readBulk, problems.refuseBatch, a.writeAnswer, func(ctx context.Context, p *accounts.Principal, req intake.Bulk, key *intake.Key) (intake.Answer, error) {
		req.Key = key
		return a.Intake.SendBulk(ctx, p, req)
	})
}

func (a *API) readBulk(f fields) (req intake.Bulk, p problems) {
	req.Sender = p.sender(f.sender, senderFieldRequired, senderInvalid)
	req.Schedule = p.schedule(f.sendAt, f.expireAt)
	req.Messages = readList(&p, f.messages, messagesEmpty, messagesMany, func(item *fields) (m intake.BulkMessage) {
		m.Number = p.number(a.opts.Plan, item.phoneNumber, itemNumberRequired, itemNumberInvalid)
		m.Message = p.body(item.message, itemMessageRequired, itemMessageLong)
		m.Reference = p.reference(item.reference, itemReferenceWrong)
		p.misplaced(item, &f, itemMisplaced)
		return m
	})
	return req, p
}

// misplaced adds the times of an item that differ from those of its batch: ignored, as unknown fields are, they would send the
// message at another time than the client expects.
func (p *problems) misplaced(item, batch *fields, r *refusal) {
	if !item.sendAt.isNull() && item.sendAt != batch.sendAt {
		p.addNamed(r, "send_at")
	}
	if !item.expireAt.isNull() && item.expireAt != batch.expireAt {
		p.addNamed(r, "expire_at")
	}
}
