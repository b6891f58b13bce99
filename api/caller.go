package api

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/throttle"
)

// Keys of what a request is told about itself.
const (
	principalKey = "principal"
	memoryKey    = "memory"
	leaveKey     = "leave" // of a look-up: what ends its turn
)

// refusalTime is how long it takes to refuse a token, whether its id exists or
// not and whether memory or the database knew: more than either needs.
const refusalTime = 50 * time.Millisecond

// strangerLookups are the look-ups a second that addresses with too many failures
// may cost, all together, for tokens that this process has not seen to be right.
const strangerLookups = 20

// authenticate lets pass who has a valid token (rule api 5).
//
// An address with too many failures is told so before the database is asked. A
// token from there that was right before is not held up by it, as behind one
// address there may be many customers; for others a few look-ups a second remain,
// so that one of them gets in before this process knows it.
func (a *API) authenticate(c *gin.Context) {
	start := time.Now()
	token, ok := bearer(c.GetHeader("Authorization"))
	if !ok {
		a.logStranger(c, "")
		refuse(c, unauthenticatedCaller)
		return
	}
	if a.opts.FailedLogins != nil {
		until, refused := a.opts.FailedLogins.Refused(addressKey(c.ClientIP()))
		if refused && !a.accounts.Recognize(token) && !a.strangers.take(start) {
			refuseFailures(c, until)
			return
		}
	}
	p, err := a.accounts.Authenticate(c.Request.Context(), token)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		a.logStranger(c, token)
		a.failedLogin(c, start)
	case err != nil:
		a.away(c, "authenticating", err)
	default:
		c.Set(principalKey, p)
		c.Set(memoryKey, a.memory)
	}
}

// failedLogin answers a wrong token, refusalTime after start: 401, and for one
// address's wrong tokens past FailedLogins a minute 429.
func (a *API) failedLogin(c *gin.Context, start time.Time) {
	decision := throttle.Decision{Allowed: true}
	if a.opts.FailedLogins != nil {
		decision = a.opts.FailedLogins.Allow(c.Request.Context(), addressKey(c.ClientIP()))
	}
	timer := time.NewTimer(time.Until(start.Add(refusalTime)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.Request.Context().Done():
	}
	if decision.Allowed {
		refuse(c, unauthenticatedCaller)
	} else {
		refuseFailures(c, decision.ResetAt)
	}
}

func refuseFailures(c *gin.Context, until time.Time) {
	tryAfter(c, time.Until(until))
	refuse(c, tooManyFailures)
}

// quota is so many a second. The zero value with most set is ready.
type quota struct {
	most int

	mu     sync.Mutex
	second int64
	used   int
}

// take takes one of this second's; false when there is none left.
func (q *quota) take(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if second := now.Unix(); second != q.second {
		q.second, q.used = second, 0
	}
	if q.used >= q.most {
		return false
	}
	q.used++
	return true
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

// limit counts the request against its user's rate (rule api 8).
func (a *API) limit(c *gin.Context) {
	d := a.throttle.Allow(c.Request.Context(), caller(c).UserID)
	header(c, "X-RateLimit-Limit", strconv.Itoa(d.Limit))
	header(c, "X-RateLimit-Remaining", strconv.Itoa(d.Remaining))
	if d.Allowed {
		return
	}
	tryAfter(c, time.Until(d.ResetAt))
	header(c, "X-RateLimit-Reset", strconv.FormatInt(d.ResetAt.Add(time.Second-1).Unix(), 10))
	refuse(c, tooManySends)
}

// companyOf answers the caller's company, whose data alone it may see. It
// answers the client itself when there is none.
func (a *API) companyOf(c *gin.Context) (*accounts.Company, bool) {
	p := caller(c)
	if p.Company == nil { // perhaps it was created a moment ago
		fresh, err := a.accounts.Fresh(c.Request.Context(), p)
		switch {
		case errors.Is(err, accounts.ErrUnauthenticated):
			refuse(c, unauthenticatedCaller)
			return nil, false
		case err != nil:
			a.away(c, "reading an account", err)
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
