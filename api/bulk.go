package api

import (
	"strconv"

	"github.com/gin-gonic/gin"

	"intumwa/intake"
)

// Texts of rule api 7.1, bulk; those of items stand behind
// "The messages.N.<field> field ".
const (
	textSenderFieldRequired = "The sender field is required."
	textMessagesEmpty       = "The messages field must contain at least one item."
	textMessagesMany        = "The messages field must not contain more than 500 items."

	endRequired     = " field is required."
	endNumber       = " field must be a valid Burundi (+257) number."
	endMessageLong  = " field must not exceed 600 characters."
	endVariableLong = " field must not exceed 255 characters."
	endVariableText = " field must be a string."
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
	var wrong string
	if req.Sender, wrong = sender(name, textSenderFieldRequired, textSenderInvalid); wrong != "" {
		p.add("sender", wrong)
	}
	switch n := length(list); {
	case n == 0:
		p.add("messages", textMessagesEmpty)
	case n > maxItems:
		p.add("messages", textMessagesMany)
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
	var wrong string
	if m.Number, wrong = a.number(number, endRequired, endNumber); wrong != "" {
		p.addItem("messages", index, "phone_number", wrong)
	}
	if m.Message, wrong = body(text, endRequired, endMessageLong); wrong != "" {
		p.addItem("messages", index, "message", wrong)
	}
	return m
}

// addItem adds a problem of a list's item, whose path the text begins with.
func (p *problems) addItem(list string, index int, field, end string) {
	p.addParts(list+"."+strconv.Itoa(index)+".", field, end)
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
