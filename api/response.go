package api

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/accounts/testnumbers"
	"intumwa/contacts"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

// message is the body of every error response.
type message struct {
	Message string `json:"message"`
}

// Error returns the text; a refusal may be returned as an error.
func (r *refusal) Error() string { return r.text }

// writeRefusal responds with a refusal.
func writeRefusal(c *gin.Context, r *refusal) {
	abortWithCode(c, r.code)
	writeJSON(c, r.status, message{r.text})
}

// respond makes a handler from a function that returns the view of its response, or an error for writeError.
func respond[V any](a *API, handle func(*gin.Context) (V, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		view, err := handle(c)
		if err != nil {
			a.writeError(c, err)
			return
		}
		writeJSON(c, http.StatusOK, view)
	}
}

// refusedView is the body of a business rule's refusal.
type refusedView struct {
	message

	OptedOut []intake.OptedOutRecipient `json:"opted_out,omitempty"` // of a batch: all of them, 500 at most
}

// refusalsOf maps errors of other packages to refusals.
var refusalsOf = []struct {
	err     error
	refusal *refusal
}{
	{messages.ErrNotFound, notFound}, {handsets.ErrNotFound, notFound}, {webhooks.ErrNotFound, notFound},
	{handsets.ErrListFull, optOutsFull},
	{contacts.ErrNotFound, notFound}, {contacts.ErrNoGroup, notFound}, {contacts.ErrFull, bookFull},
	{contacts.ErrGroups, groupsFull},
	{accounts.ErrUnauthenticated, unauthenticatedCaller}, // revoked a moment ago
	{verifications.ErrNotFound, notFound}, {verifications.ErrWrong, codeWrong}, {verifications.ErrExpired, codeExpired},
	{verifications.ErrFinished, verificationFinished}, {verifications.ErrChecks, verificationChecks},
	{verifications.ErrLong, verificationLong},
	{intake.ErrKeyInUse, keyInUse}, {intake.ErrKeyReused, keyReused},
	{testnumbers.ErrVerifiedAlready, verifiedAlready}, {testnumbers.ErrReplacements, noReplacements},
	{testnumbers.ErrNoCode, codeNone}, {testnumbers.ErrCodeExpired, codeExpired}, {testnumbers.ErrCodeTries, codeTries},
}

// writeError responds to an error with its refusal, or with 503.
func (a *API) writeError(c *gin.Context, err error) {
	if !a.writeRefused(c, err) {
		a.writeUnavailable(c, err)
	}
}

// writeRefused responds to an error that refuses the request; it returns false for any other one.
func (a *API) writeRefused(c *gin.Context, err error) bool {
	if refusal, ok := errors.AsType[*refusal](err); ok {
		writeRefusal(c, refusal)
		return true
	}
	if view, ok := errors.AsType[invalidView](err); ok {
		abortWithCode(c, view.Errors.code)
		writeJSON(c, http.StatusUnprocessableEntity, view)
		return true
	}
	if refusal, ok := errors.AsType[sms.Refusal](err); ok {
		abortWithCode(c, codeOf(refusal))
		view := refusedView{message: message{refusal.Text}}
		if out, some := errors.AsType[*intake.OptedOut](err); some {
			view.OptedOut = out.Recipients
		}
		writeJSON(c, http.StatusBadRequest, view)
		return true
	}
	for _, each := range refusalsOf {
		if errors.Is(err, each.err) {
			writeRefusal(c, each.refusal)
			return true
		}
	}
	return false
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

// largeResponse is the size in bytes above which a response counts against BodyMemory until the client has read it.
// Smaller ones fit into the socket buffers.
const largeResponse = 64 << 10

// writeBody writes a JSON text.
func writeBody(c *gin.Context, status int, text []byte) {
	if leave, known := c.Get(releaseKey); known {
		leave.(func())()
	}
	if shared, known := c.Get(memoryKey); known && len(text) > largeResponse {
		m, user, size := shared.(*memory), caller(c).UserID, int64(len(text))
		if m.take(user, size, "answer") {
			defer m.release(user, size)
		} else {
			setRetryAfter(c, 5*time.Second)
			abortWithCode(c, unavailable.code)
			status, text = unavailable.status, intake.Encode(message{unavailable.text})
		}
	}
	c.Data(status, "application/json", text)
}

// setHeader sets a header with this spelling: net/http would write X-RateLimit-Limit as X-Ratelimit-Limit.
func setHeader(c *gin.Context, name, text string) {
	c.Writer.Header()[name] = []string{text}
}

// setRetryAfter sets Retry-After in whole seconds, rounded up: a client that waits that long is not refused again.
func setRetryAfter(c *gin.Context, wait time.Duration) {
	c.Header("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
}

// writeUnavailable responds with 503: the database is unreachable or the process is overloaded. Nothing was charged,
// unless err is intake.ErrOutcomeUnknown, which has another code (rule choices 10.2).
func (a *API) writeUnavailable(c *gin.Context, err error) {
	// At most one line a second: during an outage every request fails in the same way.
	now := time.Now().Unix()
	if c.Request.Context().Err() == nil && a.unavailableLogged.Swap(now) != now {
		a.log(c).Error("request failed", "event", "request_failed", "path", c.FullPath(), "error", err)
	}
	setRetryAfter(c, 5*time.Second)
	if errors.Is(err, intake.ErrOutcomeUnknown) {
		writeRefusal(c, outcomeUnknown)
		return
	}
	writeRefusal(c, unavailable)
}

// writeServerError responds with 500; the details go to the log only.
func (a *API) writeServerError(c *gin.Context, err error) {
	a.log(c).Error("request failed", "event", "request_failed", "path", c.FullPath(), "error", err)
	writeRefusal(c, serverError)
}

// timestamp formats a time as ISO 8601 with offset, like the webhooks.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05-07:00") }

// timestampOrNull formats a time; nil becomes null.
func timestampOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := timestamp(*t)
	return &text
}

// timestampIfAny formats a time; the zero time becomes nil.
func timestampIfAny(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return timestampOrNull(&t)
}

// orNull returns nil, null in JSON, for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
