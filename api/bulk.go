package api

import (
	"context"
	"strconv"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
)

// sendBulk is POST /v1/sms/bulk (rule api 4.2).
func (a *API) sendBulk(c *gin.Context) {
	handleSend(a, c, a.readBulk, problems.refuseBatch, a.writeAnswer, func(ctx context.Context, p *accounts.Principal, req intake.Bulk, key *intake.Key) (intake.Answer, error) {
		req.Key = key
		return a.intake.SendBulk(ctx, p, req)
	})
}

func (a *API) readBulk(fields value) (req intake.Bulk, p problems) {
	var name, list, send, expire value
	for key, v := range fields.members() {
		switch key {
		case "sender":
			name = v
		case "messages":
			list = v
		case "send_at":
			send = v
		case "expire_at":
			expire = v
		}
	}
	var wrong *refusal
	if req.Sender, wrong = sender(name, senderFieldRequired); wrong != nil {
		p.add(wrong)
	}
	req.Schedule = p.schedule(send, expire)
	switch n := length(list); {
	case n == 0:
		p.add(messagesEmpty)
	case n > maxItems:
		p.add(messagesMany)
	default:
		req.Messages = make([]intake.BulkMessage, 0, n)
		for item := range list.elements() {
			req.Messages = append(req.Messages, a.readBulkMessage(item, len(req.Messages), &p))
		}
	}
	return req, p
}

// readBulkMessage reads one item. An item that is not an object counts as an empty one.
func (a *API) readBulkMessage(item value, index int, p *problems) (m intake.BulkMessage) {
	var number, text, own value
	for key, v := range item.members() {
		switch key {
		case "phone_number":
			number = v
		case "message":
			text = v
		case "client_reference":
			own = v
		}
	}
	var wrong *refusal
	if m.Number, wrong = a.number(number, itemNumberRequired, itemNumberInvalid); wrong != nil {
		p.addItem(wrong, "messages", index, "phone_number")
	}
	if m.Message, wrong = body(text, itemMessageRequired, itemMessageLong); wrong != nil {
		p.addItem(wrong, "messages", index, "message")
	}
	if m.Reference, wrong = ownName(own, itemReferenceInvalid); wrong != nil {
		p.addItem(wrong, "messages", index, "client_reference")
	}
	return m
}

// addItem adds a problem of a list's item; the text begins with the item's path.
func (p *problems) addItem(r *refusal, list string, index int, field string) {
	p.addNamed(r, list+"."+strconv.Itoa(index)+".", field)
}

// length counts a list's items, up to one more than a batch may have; any other value
// has none.
func length(list value) (n int) {
	for range list.elements() {
		if n++; n > maxItems {
			break
		}
	}
	return n
}
