package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
)

// sendSingle is POST /v1/sms (rule api 4.1).
func (a *API) sendSingle(c *gin.Context) {
	accept(a, c, a.readSingle, problems.refuseFirst, a.answerSingle, func(ctx context.Context, p *accounts.Principal, req intake.Single, key *intake.Key) (intake.Answer, error) {
		req.Key = key
		return a.intake.Send(ctx, p, req)
	})
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
	var unsent *refusal
	req.Sender, unsent = sender(name, senderRequired)
	if req.Number, wrong = a.number(number, numberRequired, numberInvalid); wrong != nil {
		fixed, isFixed := sms.Number(""), false
		if text, isText := number.text(); isText && req.Sender != "" && req.Sender == a.opts.TestSender {
			fixed, isFixed = sms.ParseSandbox(text)
		}
		if req.Number = fixed; !isFixed {
			p.add(wrong)
		}
	}
	if unsent != nil {
		p.add(unsent)
	}
	if req.Message, wrong = body(text, messageRequired, messageLong); wrong != nil {
		p.add(wrong)
	}
	return req, p
}
