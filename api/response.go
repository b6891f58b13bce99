package api

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/messages"
	"intumwa/webhooks"
)

// message is the body of every error response.
type message struct {
	Message string `json:"message"`
}

// writeRefusal responds with a refusal.
func writeRefusal(c *gin.Context, r *refusal) {
	abortWithCode(c, r.code)
	writeJSON(c, r.status, message{r.text})
}

// abortWithCode stops the handler chain and puts the refusal's code into X-Error-Code.
func abortWithCode(c *gin.Context, code string) {
	c.Abort()
	setHeader(c, "X-Error-Code", code)
}

// writeJSON responds with a JSON body. HTML characters are not escaped.
func writeJSON(c *gin.Context, status int, body any) {
	writeBody(c, status, intake.Encode(body))
}

// largeResponse is the size in octets above which a response counts against
// BodyMemory until the client has read it. Smaller ones fit into the system's
// socket buffers.
const largeResponse = 64 << 10

// writeBody writes a JSON text.
func writeBody(c *gin.Context, status int, text []byte) {
	if leave, known := c.Get(releaseKey); known {
		leave.(func())()
	}
	if shared, known := c.Get(memoryKey); known && len(text) > largeResponse {
		m, user, octets := shared.(*memory), caller(c).UserID, int64(len(text))
		if m.take(user, octets, "answer") {
			defer m.release(user, octets)
		} else {
			setRetryAfter(c, 5*time.Second)
			abortWithCode(c, unavailable.code)
			status, text = unavailable.status, intake.Encode(message{unavailable.text})
		}
	}
	c.Data(status, "application/json", text)
}

// writeLookupError responds to an error of a look-up.
func (a *API) writeLookupError(c *gin.Context, doing string, err error) {
	switch {
	case errors.Is(err, messages.ErrNotFound), errors.Is(err, handsets.ErrNotFound), errors.Is(err, webhooks.ErrNotFound):
		writeRefusal(c, notFound)
	case errors.Is(err, accounts.ErrUnauthenticated): // revoked a moment ago
		writeRefusal(c, unauthenticatedCaller)
	default:
		a.writeUnavailable(c, doing, err)
	}
}

// setHeader sets a header and keeps the spelling of its name: net/http would
// write X-RateLimit-Limit as X-Ratelimit-Limit.
func setHeader(c *gin.Context, name, text string) {
	c.Writer.Header()[name] = []string{text}
}

// setRetryAfter sets Retry-After: whole seconds, rounded up, so that a client
// that waits that long is not refused again.
func setRetryAfter(c *gin.Context, wait time.Duration) {
	c.Header("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
}

// writeUnavailable responds with 503: the database is unreachable or the process is
// overloaded. Nothing was charged, unless err is intake.ErrOutcomeUnknown: then the code is
// another (rule choices 10.2).
func (a *API) writeUnavailable(c *gin.Context, doing string, err error) {
	// One line a second: during an outage every request fails in the same way.
	now := time.Now().Unix()
	if c.Request.Context().Err() == nil && a.unavailableLogged.Swap(now) != now {
		a.log(c).Error("request failed: "+doing, "path", c.FullPath(), "error", err)
	}
	setRetryAfter(c, 5*time.Second)
	if errors.Is(err, intake.ErrOutcomeUnknown) {
		writeRefusal(c, outcomeUnknown)
		return
	}
	writeRefusal(c, unavailable)
}

// writeServerError responds with 500; the details go to the log only.
func (a *API) writeServerError(c *gin.Context, doing string, err error) {
	a.log(c).Error("request failed: "+doing, "path", c.FullPath(), "error", err)
	writeRefusal(c, serverError)
}

// timestamp formats a time as ISO 8601 with offset, like the webhooks.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05-07:00") }

// timestampOrNull is timestamp for a time that may be missing: nil becomes null.
func timestampOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := timestamp(*t)
	return &text
}

// timestampIfAny is timestamp for a time that may be zero: nil.
func timestampIfAny(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return timestampOrNull(&t)
}

// orNull returns nil for the zero value, which JSON shows as null.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
