package api

import (
	"github.com/gin-gonic/gin"

	"intumwa/intake"
)

// Texts of rule api 7.1, single send.
const (
	textNumberRequired  = "The phone number is required."
	textNumberInvalid   = "The phone number must be a valid Burundi (+257) number."
	textSenderRequired  = "The sender is required."
	textSenderInvalid   = "The sender must be 1-11 alphanumeric characters."
	textMessageRequired = "The message content is required."
	textMessageLong     = "The message must not exceed 600 characters."
)

// sendSingle is POST /v1/sms (rule api 4.1).
func (a *API) sendSingle(c *gin.Context) {
	raw, fields, done, ok := a.body(c)
	if !ok {
		return
	}
	defer done()
	key, ok := idempotencyKey(c, raw)
	if !ok {
		return
	}
	req, problems := a.readSingle(fields)
	if !problems.none() {
		done()
		problems.refuseFirst(c)
		return
	}
	req.Key = key
	answer, err := a.intake.Send(background(c), caller(c), req)
	done()
	a.answer(c, answer, err)
}

func (a *API) readSingle(fields value) (req intake.Single, p problems) {
	var number, name, text value
	for key, v := range fields.members() {
		switch key {
		case "phone_number":
			number = v
		case "sender":
			name = v
		case "message":
			text = v
		}
	}
	var wrong string
	if req.Number, wrong = a.number(number, textNumberRequired, textNumberInvalid); wrong != "" {
		p.add("phone_number", wrong)
	}
	if req.Sender, wrong = sender(name, textSenderRequired, textSenderInvalid); wrong != "" {
		p.add("sender", wrong)
	}
	if req.Message, wrong = body(text, textMessageRequired, textMessageLong); wrong != "" {
		p.add("message", wrong)
	}
	return req, p
}
