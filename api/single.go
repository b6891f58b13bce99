package api

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
)

// Texts of contract 7.1, single send.
const (
	textNumberRequired  = "The phone number is required."
	textNumberInvalid   = "The phone number must be a valid Burundi (+257) number."
	textSenderRequired  = "The sender is required."
	textSenderInvalid   = "The sender must be 1-11 alphanumeric characters."
	textMessageRequired = "The message content is required."
	textMessageLong     = "The message must not exceed 600 characters."
)

// sendSingle is POST /v1/sms (contract 4.1).
func (a *API) sendSingle(c *gin.Context) {
	fields, raw, ok := a.body(c)
	if !ok {
		return
	}
	key, ok := idempotencyKey(c, raw)
	if !ok {
		return
	}
	req, problems := a.readSingle(fields)
	if problems.any() {
		a.invalid(c, problems.first, problems)
		return
	}
	req.Key = key
	answer, err := a.intake.Send(background(c), caller(c), req)
	a.answer(c, answer, err)
}

func (a *API) readSingle(fields map[string]any) (intake.Single, *problems) {
	var req intake.Single
	var p problems
	var problem string
	if req.Number, problem = a.number(fields["phone_number"], textNumberRequired, textNumberInvalid); problem != "" {
		p.add("phone_number", problem)
	}
	if sender, ok := senderName(fields["sender"]); ok {
		req.Sender = sender
	} else if missing(fields["sender"]) {
		p.add("sender", textSenderRequired)
	} else {
		p.add("sender", textSenderInvalid)
	}
	if req.Message, problem = text(fields["message"], textMessageRequired, textMessageLong); problem != "" {
		p.add("message", problem)
	}
	return req, &p
}

// answer writes what intake made of a send request.
func (a *API) answer(c *gin.Context, answer intake.Answer, err error) {
	switch refusal, refused := errors.AsType[sms.Refusal](err); {
	case err == nil:
		if answer.Replayed {
			c.Header("Idempotent-Replayed", "true")
		}
		c.Data(http.StatusOK, "application/json", answer.Body)
	case refused:
		say(c, http.StatusBadRequest, refusal.Text)
	case errors.Is(err, accounts.ErrUnauthenticated):
		a.unauthenticated(c)
	case errors.Is(err, intake.ErrKeyInUse):
		say(c, http.StatusConflict, "A request with this idempotency key is still being processed.")
	case errors.Is(err, intake.ErrKeyReused):
		say(c, http.StatusUnprocessableEntity, "The idempotency key was already used with a different request.")
	case errors.Is(err, intake.ErrUnavailable):
		a.unavailable(c, "accepting a message", err)
	default:
		a.fail(c, "accepting a message", err)
	}
}
