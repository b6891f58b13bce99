package api

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/internal/throttle"
	"intumwa/sms"
)

// Keys of values in the gin.Context of a request.
const (
	principalKey = "principal"
	memoryKey    = "memory"
	releaseKey   = "leave"  // func() that releases the slot of a look-up
	waitedKey    = "waited" // time.Duration for which it waited for events
)

// refusalDelay is when a wrong token is refused: later than any look-up takes, so the response time does not show
// whether the id exists.
const refusalDelay = 50 * time.Millisecond

// suspectLookupsPerSecond limits the look-ups of tokens that this process has not authenticated yet, for all addresses
// with too many failures together.
const suspectLookupsPerSecond = 20

// authenticate accepts requests with a valid token within its limits (rule api 5).
//
// An address with too many failures is refused without a look-up, unless this process has authenticated the token
// before: many customers may share one address. A few look-ups a second remain for its other tokens, so a valid one
// passes after some tries.
func (a *API) authenticate(c *gin.Context) {
	start := time.Now()
	token, ok := bearer(c.GetHeader("Authorization"))
	if !ok {
		a.logUnauthorized(c, "")
		writeRefusal(c, unauthenticatedCaller)
		return
	}
	if a.opts.FailedLogins != nil {
		until, refused := a.opts.FailedLogins.Refused(addressKey(c.ClientIP()))
		if refused && !a.Holders.Recognize(token) && !a.suspectLookups.take(start) {
			writeTooManyFailures(c, until)
			return
		}
	}
	p, err := a.Holders.Authenticate(c.Request.Context(), token)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		a.logUnauthorized(c, token)
		a.refuseToken(c, start)
	case err != nil:
		a.writeUnavailable(c, err)
	case !p.Token.From(c.ClientIP()):
		writeRefusal(c, wrongNetwork)
	case reads(c.Request.Method) && !p.Token.May(accounts.ScopeRead):
		writeRefusal(c, mayNotRead)
	case !reads(c.Request.Method) && !p.Token.May(accounts.ScopeSend):
		writeRefusal(c, mayNotSend)
	default:
		c.Set(principalKey, p)
		c.Set(memoryKey, a.memory)
	}
}

// refuseToken responds to a wrong token refusalDelay after start: 401, or 429 when its address has reached the limit of
// FailedLogins.
func (a *API) refuseToken(c *gin.Context, start time.Time) {
	decision := throttle.Decision{Allowed: true}
	if a.opts.FailedLogins != nil {
		decision = a.opts.FailedLogins.Allow(c.Request.Context(), addressKey(c.ClientIP()))
	}
	timer := time.NewTimer(time.Until(start.Add(refusalDelay)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.Request.Context().Done():
	}
	if decision.Allowed {
		writeRefusal(c, unauthenticatedCaller)
	} else {
		writeTooManyFailures(c, decision.ResetAt)
	}
}

func writeTooManyFailures(c *gin.Context, until time.Time) {
	setRetryAfter(c, time.Until(until))
	writeRefusal(c, tooManyFailures)
}

// perSecond limits events to most in each second. The zero value with most set is ready.
type perSecond struct {
	most int

	mu     sync.Mutex
	second int64
	used   int
}

// take counts an event; it returns false when the second's limit is reached.
func (q *perSecond) take(now time.Time) bool {
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

// addressKey returns the key under which an address's failures are counted.
func addressKey(address string) int64 {
	sum := sha256.Sum256([]byte(throttle.Network(address)))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// bearer returns the token of an Authorization header. The scheme is case-insensitive (RFC 9110, 11.1).
func bearer(header string) (string, bool) {
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

func caller(c *gin.Context) *accounts.Principal {
	return c.MustGet(principalKey).(*accounts.Principal)
}

// limitRate counts the request against its user's rate (rule api 8).
func (a *API) limitRate(c *gin.Context) {
	d := a.Throttle.Allow(c.Request.Context(), caller(c).UserID)
	setHeader(c, "X-RateLimit-Limit", strconv.Itoa(d.Limit))
	setHeader(c, "X-RateLimit-Remaining", strconv.Itoa(d.Remaining))
	if d.Allowed {
		return
	}
	setRetryAfter(c, time.Until(d.ResetAt))
	setHeader(c, "X-RateLimit-Reset", strconv.FormatInt(postgres.Moment(d.ResetAt).Add(time.Second-1).Unix(), 10))
	writeRefusal(c, tooManySends)
}

// needCompany refuses callers without a company.
func (a *API) needCompany(c *gin.Context) {
	p := caller(c)
	if p.Company == nil { // it may have been created a moment ago
		fresh, err := a.Holders.Fresh(c.Request.Context(), p)
		if err != nil {
			a.writeError(c, err)
			return
		}
		p = fresh
		c.Set(principalKey, p)
	}
	if p.Company == nil {
		a.writeError(c, intake.RefuseNoCompany)
	}
}

// companyID returns the id of the caller's company. The route needs needCompany.
func companyID(c *gin.Context) sms.CompanyID { return sms.CompanyID(caller(c).Company.ID) }

// logUnauthorized logs a request without a valid token, at most once a second: its address and the number before the
// token's bar (the id of a token issued here), never the rest of the token.
func (a *API) logUnauthorized(c *gin.Context, token string) {
	now := time.Now().Unix()
	if a.unauthorizedLogged.Swap(now) == now {
		return
	}
	number, _, _ := strings.Cut(token, "|")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || len(number) > 12 { // no id has so many digits, but a secret may
		id = 0
	}
	a.opts.Log.Warn("request unauthorized: its token is missing, mistyped, revoked or expired", "event",
		"request_unauthorized", "address", c.ClientIP(), "token_id", id)
}

// reads reports whether a method changes nothing.
func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }
