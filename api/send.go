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

// background is the context of work that goes on when the client hangs up. It bears
// the request's id, for the log.
func background(c *gin.Context) context.Context {
	return intake.WithRequest(context.WithoutCancel(c.Request.Context()), c.GetString(requestKey))
}

// accept is the way of each send request: the body, its key, what read makes of it,
// and then send, unless a refusal is due before. What the body held is given back
// before anything is written, since the client may take its time to read.
func accept[R any](a *API, c *gin.Context, read func(value) (R, problems), invalid func(problems, *gin.Context),
	answer func(*gin.Context, intake.Answer, error), send func(context.Context, *accounts.Principal, R, *intake.Key) (intake.Answer, error)) {
	raw, fields, done, ok := a.body(c)
	if !ok {
		return
	}
	defer done()
	key, ok := idempotencyKey(c, raw)
	if !ok {
		return
	}
	request, problems := read(fields)
	if !problems.none() {
		done()
		invalid(problems, c)
		return
	}
	accepted, err := send(background(c), caller(c), request, key)
	done()
	answer(c, accepted, err)
}

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
		refusedAs(c, codeOf(refusal))
		write(c, http.StatusBadRequest, message{refusal.Text})
	case errors.Is(err, accounts.ErrUnauthenticated):
		refuse(c, unauthenticatedCaller)
	case errors.Is(err, intake.ErrKeyInUse):
		refuse(c, keyInUse)
	case errors.Is(err, intake.ErrKeyReused):
		refuse(c, keyReused)
	case errors.Is(err, intake.ErrUnavailable):
		a.away(c, doing, err)
	default:
		a.fail(c, doing, err)
	}
}
