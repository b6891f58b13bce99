package api

import (
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// logStranger logs a request without a token that is known: one line a second at
// most, with the address and the number before the token's bar, which is the
// token's id when it was one of ours. Nothing else of it.
func (a *API) logStranger(c *gin.Context, token string) {
	now := time.Now().Unix()
	if a.strangerLogged.Swap(now) == now {
		return
	}
	number, _, _ := strings.Cut(token, "|")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || len(number) > 12 { // no id has so many digits; a secret may
		id = 0
	}
	a.opts.Log.Warn("request unauthorized: its token is missing, mistyped or revoked", "address", c.ClientIP(), "token_id", id)
}
