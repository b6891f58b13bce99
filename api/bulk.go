package api

import (
	"strconv"

	"github.com/gin-gonic/gin"

	"intumwa/intake"
)

// sendBulk is POST /v1/sms/bulk (rule api 4.2).
func (a *API) sendBulk(c *gin.Context) {
	raw, fields, done, ok := a.body(c)
	if !ok {
		return
	}
	defer done()
	key, ok := idempotencyKey(c, raw)
	if !ok {
		return
	}
	req, problems := a.readBulk(fields)
	if !problems.none() {
		done() // the client may take its time to read what is wrong
		problems.refuse(c, textInvalid)
		return
	}
	req.Key = key
	answer, err := a.intake.SendBulk(background(c), caller(c), req)
	done()
	a.answer(c, answer, err)
}

func (a *API) readBulk(fields value) (req intake.Bulk, p problems) {
	var name, list value
	for key, v := range fields.members() {
		switch key {
		case "sender":
			name = v
		case "messages":
			list = v
		}
	}
	var wrong *refusal
	if req.Sender, wrong = sender(name, senderFieldRequired); wrong != nil {
		p.add(wrong)
	}
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

// readBulkMessage reads one item. One that is no object is an empty one.
func (a *API) readBulkMessage(item value, index int, p *problems) (m intake.BulkMessage) {
	var number, text value
	for key, v := range item.members() {
		switch key {
		case "phone_number":
			number = v
		case "message":
			text = v
		}
	}
	var wrong *refusal
	if m.Number, wrong = a.number(number, itemNumberRequired, itemNumberInvalid); wrong != nil {
		p.addItem(wrong, "messages", index, "phone_number")
	}
	if m.Message, wrong = body(text, itemMessageRequired, itemMessageLong); wrong != nil {
		p.addItem(wrong, "messages", index, "message")
	}
	return m
}

// addItem adds a problem of a list's item, whose path the text begins with.
func (p *problems) addItem(r *refusal, list string, index int, field string) {
	p.addNamed(r, list+"."+strconv.Itoa(index)+".", field)
}

// length counts a list's items, up to one more than a batch may have; a value
// of another type has none.
func length(list value) (n int) {
	for range list.elements() {
		if n++; n > maxItems {
			break
		}
	}
	return n
}
