package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
)

// sendBatch is POST /v1/sms/bulk and /v1/sms/template; read parses the body's fields.
func (a *API) sendBatch(read func(fields) (intake.Batch, problems)) gin.HandlerFunc {
	return func(c *gin.Context) {
		handleSend(a, c, read, problems.ofBatch, a.writeAnswer,
			func(ctx context.Context, p *accounts.Principal, req intake.Batch, key *intake.Key) (intake.Answer, error) {
				req.Key = key
				return a.Intake.SendBatch(ctx, p, req)
			})
	}
}

// readBulk reads a bulk send (rule api 4.2).
func (a *API) readBulk(f fields) (req intake.Batch, p problems) {
	req.Sender = p.sender(f.sender, senderFieldRequired, senderInvalid)
	req.CostCenter = p.label(f.costCenter, costCenterWrong)
	req.Schedule = p.schedule(f.sendAt, f.expireAt)
	req.Recipients = readList(&p, f.messages, messagesEmpty, messagesMany, func(item *fields) (r intake.Recipient) {
		r.Number = p.number(a.opts.Plan, item.phoneNumber, ofMessages.numberRequired, ofMessages.numberInvalid)
		r.Message = p.body(item.message, itemMessageRequired, itemMessageLong)
		r.Reference = p.label(item.reference, ofMessages.reference)
		p.misplaced(item, &f, ofMessages.misplaced)
		return r
	})
	return req, p
}

// misplaced adds the fields of an item that belong to the whole batch and differ from its own. They are not ignored as
// unknown fields are: the message would go out at another time, or be counted elsewhere, than the client expects.
func (p *problems) misplaced(item, batch *fields, r *refusal) {
	if !item.sendAt.isNull() && item.sendAt != batch.sendAt {
		p.addNamed(r, "send_at")
	}
	if !item.expireAt.isNull() && item.expireAt != batch.expireAt {
		p.addNamed(r, "expire_at")
	}
	if !item.costCenter.isNull() && item.costCenter != batch.costCenter {
		p.addNamed(r, "cost_center")
	}
}
