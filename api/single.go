package api

import (
	"github.com/gin-gonic/gin"

	"intumwa/intake"
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
	a.answerSingle(c, answer, err)
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
	var wrong *refusal
	if req.Number, wrong = a.number(number, numberRequired, numberInvalid); wrong != nil {
		p.add(wrong)
	}
	if req.Sender, wrong = sender(name, senderRequired); wrong != nil {
		p.add(wrong)
	}
	if req.Message, wrong = body(text, messageRequired, messageLong); wrong != nil {
		p.add(wrong)
	}
	return req, p
}
