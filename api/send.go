package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
)

// background is the context of work that goes on when the client hangs up.
func background(c *gin.Context) context.Context { return context.WithoutCancel(c.Request.Context()) }

// answer writes what intake made of a send request.
func (a *API) answer(c *gin.Context, answer intake.Answer, err error) {
	if err != nil {
		a.refuse(c, "accepting a message", err)
		return
	}
	if answer.Replayed {
		c.Header("Idempotent-Replayed", "true")
	}
	c.Data(http.StatusOK, "application/json", answer.Body)
}

// refuse answers for an error of the rooms below.
func (a *API) refuse(c *gin.Context, doing string, err error) {
	switch refusal, refused := errors.AsType[sms.Refusal](err); {
	case refused:
		say(c, http.StatusBadRequest, refusal.Text)
	case errors.Is(err, accounts.ErrUnauthenticated):
		unauthenticated(c)
	case errors.Is(err, intake.ErrKeyInUse):
		say(c, http.StatusConflict, "A request with this idempotency key is still being processed.")
	case errors.Is(err, intake.ErrKeyReused):
		say(c, http.StatusUnprocessableEntity, "The idempotency key was already used with a different request.")
	case errors.Is(err, intake.ErrUnavailable):
		a.unavailable(c, doing, err)
	default:
		a.fail(c, doing, err)
	}
}
