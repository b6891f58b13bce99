package api

import (
	"errors"

	"github.com/gin-gonic/gin"

	"intumwa/internal/throttle"
)

// lookup is the middleware of look-ups: 429 when the user's slots are taken, 503 when all are. The slot is released
// before the response is written (writeBody), so a slow reader does not hold it.
//
// Sends do not count: they have a connection pool of their own.
func (a *API) lookup(c *gin.Context) {
	if leave, ok := a.enterLookup(c); ok {
		defer leave()
		c.Next()
	}
}

// enterLookup takes a slot. When there is none, it writes the response and returns false. An endpoint with a body calls
// it after reading the body, so a slow sender holds no slot.
func (a *API) enterLookup(c *gin.Context) (leave func(), ok bool) {
	leave, err := a.lookups.Enter(c.Request.Context(), caller(c).UserID)
	switch {
	case err == nil:
		c.Set(releaseKey, leave)
		return leave, true
	case errors.Is(err, throttle.ErrOwnTurns):
		setRetryAfter(c, throttle.TurnWait)
		writeRefusal(c, tooManyLookups)
	default:
		setRetryAfter(c, throttle.TurnWait)
		writeRefusal(c, unavailable)
	}
	return nil, false
}
