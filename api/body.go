package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/gin-gonic/gin"
)

// firstBuffer is what a body of unknown length begins with, in octets.
const firstBuffer = 1 << 10

// body reads a request's body and checks its syntax. Valid JSON that is no
// object is an object without fields. It answers the client itself when there
// is nothing to work with; ok is false then. done gives back what the body
// held: to be called when nothing refers to it any more.
//
// The order is 413, 415, 400, and nothing is read that a refusal can do
// without.
func (a *API) body(c *gin.Context) (raw string, fields value, done func(), ok bool) {
	done = func() {}
	r := c.Request
	if r.ContentLength > a.opts.MaxBody {
		a.tooLarge(c)
		return "", "", done, false
	}
	if !isJSON(c.GetHeader("Content-Type")) {
		if r.ContentLength < 0 { // it may yet be too large
			if n, _ := io.Copy(io.Discard, io.LimitReader(r.Body, a.opts.MaxBody+1)); n > a.opts.MaxBody {
				a.tooLarge(c)
				return "", "", done, false
			}
		}
		say(c, http.StatusUnsupportedMediaType, "The Content-Type must be application/json.")
		return "", "", done, false
	}
	raw, done, err := a.read(c)
	switch {
	case err == nil:
	case errors.Is(err, errTooLarge):
		a.tooLarge(c)
		return "", "", done, false
	case errors.Is(err, errNoPlace):
		a.unavailable(c, "waiting to read a large body", err)
		return "", "", done, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Header("Connection", "close")
		say(c, http.StatusRequestTimeout, "The request body took too long to arrive.")
		return "", "", done, false
	default: // cut short, or its chunks are not well formed
		c.Header("Connection", "close")
		say(c, http.StatusBadRequest, "The request body is not valid JSON.")
		return "", "", done, false
	}
	fields, valid := parse(raw)
	if !valid {
		done()
		say(c, http.StatusBadRequest, "The request body is not valid JSON.")
		return "", "", func() {}, false
	}
	return raw, fields, done, true
}

var errTooLarge = errors.New("the body is too large")

// read takes the body into memory. A large one waits for a place first, so that
// many of them at once stay within MaxLargeBodies × MaxBody.
func (a *API) read(c *gin.Context) (raw string, done func(), err error) {
	done = func() {}
	var text strings.Builder
	length, body := c.Request.ContentLength, c.Request.Body
	if length <= a.opts.LargeBody {
		limit := length
		if length < 0 {
			limit = a.opts.LargeBody
		}
		text.Grow(int(min(limit, firstBuffer)))
		n, err := io.Copy(&text, io.LimitReader(body, limit))
		if err != nil {
			return "", done, err
		}
		if n < limit || n == length {
			return text.String(), done, nil
		}
	}
	leave, err := a.places.enter(c.Request.Context(), caller(c).UserID)
	if err != nil {
		return "", done, err
	}
	if length > 0 {
		text.Grow(int(length))
	}
	if _, err := io.Copy(&text, io.LimitReader(body, a.opts.MaxBody+1-int64(text.Len()))); err != nil {
		leave()
		return "", done, err
	}
	if int64(text.Len()) > a.opts.MaxBody {
		leave()
		return "", done, errTooLarge
	}
	return text.String(), leave, nil
}

// tooLarge answers 413. A client that is still sending would not see an answer
// before its own error, so what it sends is taken and thrown away, to a limit;
// one that asked first (Expect: 100-continue) is told at once.
func (a *API) tooLarge(c *gin.Context) {
	if c.GetHeader("Expect") == "" {
		_, _ = io.Copy(io.Discard, io.LimitReader(c.Request.Body, a.opts.MaxBody))
	}
	c.Header("Connection", "close")
	say(c, http.StatusRequestEntityTooLarge, "The request body is too large.")
}

// isJSON takes application/json with any parameters, and application/*+json.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" ||
		strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}
