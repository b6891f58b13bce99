package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
)

// ofClient returns a context for a send: it continues when the client disconnects, and intake limits its time.
func ofClient(c *gin.Context) context.Context {
	return intake.WithClient(c.Request.Context(), c.GetString(requestKey))
}

// changeTimeout bounds a change of a customer's. A COMMIT hangs while the synchronous standby is away; the client then
// gets 503 before the connection is closed (30 s), and the database connection becomes free.
const changeTimeout = 20 * time.Second

// background returns a context for a change that continues when the client disconnects. Call cancel when it has ended.
func background(c *gin.Context) (_ context.Context, cancel context.CancelFunc) {
	return context.WithTimeout(ofClient(c), changeTimeout)
}

// handleSend handles a send request: it reads the body and the idempotency key, parses the fields with read, and calls
// send if all checks pass. It releases the body's memory before it writes the response: the client may read slowly.
func handleSend[R any](a *API, c *gin.Context, read func(fields) (R, problems), invalid func(problems) error,
	answer func(*gin.Context, intake.Answer, error), send func(context.Context, *accounts.Principal, R, *intake.Key) (
		intake.Answer, error)) {
	raw, root, done, ok := a.body(c)
	if !ok {
		return
	}
	defer done()
	key, ok := idempotencyKey(c, raw)
	if !ok {
		return
	}
	request, problems := read(root.fields())
	if err := invalid(problems); err != nil {
		done()
		a.writeError(c, err)
		return
	}
	accepted, err := send(ofClient(c), caller(c), request, key)
	done()
	answer(c, accepted, err)
}

// fieldsOf reads the fields of a free request.
func (a *API) fieldsOf(c *gin.Context) (f fields, done func(), ok bool) {
	_, root, done, ok := a.body(c)
	return root.fields(), done, ok
}

// writeAnswer writes intake's answer to a send request.
func (a *API) writeAnswer(c *gin.Context, answer intake.Answer, err error) {
	if err != nil {
		switch {
		case a.writeRefused(c, err):
		case errors.Is(err, intake.ErrUnavailable):
			a.writeUnavailable(c, err)
		default:
			a.writeServerError(c, err)
		}
		return
	}
	if answer.Replayed {
		c.Header("Idempotent-Replayed", "true")
	}
	c.Data(http.StatusOK, "application/json", answer.Body)
}

const maxKey = 255 // characters of an idempotency key

// idempotencyKey returns the Idempotency-Key header: 1 to 255 visible ASCII characters (rule choices 1.10), nil when it
// is missing. For an invalid key it writes the response and returns ok false.
func idempotencyKey(c *gin.Context, raw string) (key *intake.Key, ok bool) {
	values, given := c.Request.Header["Idempotency-Key"]
	if !given {
		return nil, true
	}
	name := values[0]
	if len(values) > 1 || len(name) < 1 || len(name) > maxKey ||
		strings.IndexFunc(name, func(r rune) bool { return r < '!' || r > '~' }) >= 0 {
		writeRefusal(c, keyInvalid)
		return nil, false
	}
	return &intake.Key{Name: name, Request: fingerprint(c.FullPath(), raw)}, true
}

// fingerprint identifies a request by its endpoint and the bytes of its body.
func fingerprint(endpoint, raw string) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(endpoint))
	h.Write([]byte{0})
	for chunk := [4096]byte{}; raw != ""; { // in chunks: []byte(raw) would copy a large body
		n := copy(chunk[:], raw)
		h.Write(chunk[:n])
		raw = raw[n:]
	}
	return [sha256.Size]byte(h.Sum(nil))
}
