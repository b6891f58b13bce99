package api

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
)

// Keys of what a request is told about itself.
const (
	principalKey = "principal"
	memoryKey    = "memory"
)

// authenticate lets pass who has a valid token (contract 5).
func (a *API) authenticate(c *gin.Context) {
	token, ok := bearer(c.GetHeader("Authorization"))
	if !ok {
		unauthenticated(c)
		return
	}
	p, err := a.accounts.Authenticate(c.Request.Context(), token)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		a.failedLogin(c)
	case err != nil:
		a.unavailable(c, "authenticating", err)
	default:
		c.Set(principalKey, p)
		c.Set(memoryKey, a.memory)
	}
}

func unauthenticated(c *gin.Context) {
	say(c, http.StatusUnauthorized, "Unauthenticated.")
}

// failedLogin answers a wrong token, and one address's wrong tokens past
// FailedLogins a minute with 429. Right tokens are never held up by it: behind
// one address there may be many customers.
func (a *API) failedLogin(c *gin.Context) {
	if a.opts.FailedLogins == nil {
		unauthenticated(c)
		return
	}
	d := a.opts.FailedLogins.Allow(c.Request.Context(), addressKey(c.ClientIP()))
	if d.Allowed {
		unauthenticated(c)
		return
	}
	tryAfter(c, time.Until(d.ResetAt))
	say(c, http.StatusTooManyRequests, "Too Many Attempts.")
}

// addressKey is the number under which an address's failures are counted; a
// customer has a whole /64 of IPv6.
func addressKey(address string) int64 {
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() && !ip.Is4In6() {
		if network, err := ip.WithZone("").Prefix(64); err == nil {
			address = network.String()
		}
	}
	sum := sha256.Sum256([]byte(address))
	return int64(binary.BigEndian.Uint64(sum[:8]))
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
	header(c, "X-RateLimit-Limit", strconv.Itoa(d.Limit))
	header(c, "X-RateLimit-Remaining", strconv.Itoa(d.Remaining))
	if d.Allowed {
		return
	}
	tryAfter(c, time.Until(d.ResetAt))
	header(c, "X-RateLimit-Reset", strconv.FormatInt(d.ResetAt.Add(time.Second-1).Unix(), 10))
	say(c, http.StatusTooManyRequests, "Too Many Attempts.")
}

// companyOf answers the caller's company, whose data alone it may see. It
// answers the client itself when there is none.
func (a *API) companyOf(c *gin.Context) (*accounts.Company, bool) {
	p := caller(c)
	if p.Company == nil { // perhaps it was created a moment ago
		fresh, err := a.accounts.Fresh(c.Request.Context(), p)
		switch {
		case errors.Is(err, accounts.ErrUnauthenticated):
			unauthenticated(c)
			return nil, false
		case err != nil:
			a.unavailable(c, "reading an account", err)
			return nil, false
		}
		p = fresh
	}
	if p.Company == nil {
		a.refuse(c, "reading an account", intake.ErrNoCompany)
		return nil, false
	}
	return p.Company, true
}
