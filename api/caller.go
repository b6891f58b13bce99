package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
)

const principalKey = "principal"

// authenticate lets pass who has a valid token (contract 5).
func (a *API) authenticate(c *gin.Context) {
	token, ok := bearer(c.GetHeader("Authorization"))
	if !ok {
		a.unauthenticated(c)
		return
	}
	p, err := a.accounts.Authenticate(c.Request.Context(), token)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		a.unauthenticated(c)
	case err != nil:
		a.unavailable(c, "authenticating", err)
	default:
		c.Set(principalKey, p)
	}
}

func (a *API) unauthenticated(c *gin.Context) {
	say(c, http.StatusUnauthorized, "Unauthenticated.")
}

// bearer takes the token out of an Authorization header; the scheme's case
// does not count (RFC 9110, 11.1).
func bearer(header string) (string, bool) {
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

func caller(c *gin.Context) *accounts.Principal {
	return c.MustGet(principalKey).(*accounts.Principal)
}

// limit counts the request against its user's rate (contract 8).
func (a *API) limit(c *gin.Context) {
	d := a.throttle.Allow(c.Request.Context(), caller(c).UserID)
	c.Header("X-RateLimit-Limit", strconv.Itoa(d.Limit))
	c.Header("X-RateLimit-Remaining", strconv.Itoa(d.Remaining))
	if d.Allowed {
		return
	}
	wait := max(int(time.Until(d.ResetAt)/time.Second)+1, 1)
	c.Header("Retry-After", strconv.Itoa(wait))
	c.Header("X-RateLimit-Reset", strconv.FormatInt(d.ResetAt.Unix(), 10))
	say(c, http.StatusTooManyRequests, "Too Many Attempts.")
}
