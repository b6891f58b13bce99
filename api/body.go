package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// freeOctets of each body are not counted: so much a connection costs anyway.
const freeOctets = 4 << 10

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
		refuse(c, notJSON)
		return "", "", done, false
	}
	raw, done, err := a.read(c)
	switch {
	case err == nil:
	case errors.Is(err, errTooLarge):
		a.tooLarge(c)
		return "", "", done, false
	case errors.Is(err, errNoPlace):
		c.Header("Connection", "close")
		a.away(c, "waiting to read a large body", err)
		return "", "", done, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Header("Connection", "close")
		refuse(c, tooSlow)
		return "", "", done, false
	default: // cut short, or its chunks are not well formed
		c.Header("Connection", "close")
		refuse(c, malformedJSON)
		return "", "", done, false
	}
	fields, valid := parse(raw)
	if !valid {
		done()
		refuse(c, malformedJSON)
		return "", "", func() {}, false
	}
	return raw, fields, done, true
}

var errTooLarge = errors.New("the body is too large")

// read takes the body into memory, which has room for so many octets of bodies
// at once (BodyMemory), and, when it is large and has come to its end, waits for
// a place among those that are worked on (MaxLargeBodies). What a client only
// promises takes neither. done may be called more than once.
func (a *API) read(c *gin.Context) (raw string, done func(), err error) {
	length := c.Request.ContentLength
	if length >= 0 && length <= freeOctets { // as nearly all are
		var text strings.Builder
		text.Grow(int(length))
		_, err := io.Copy(&text, io.LimitReader(c.Request.Body, length))
		return text.String(), func() {}, err
	}
	ctx, cancel := context.WithCancel(c.Request.Context())
	control := http.NewResponseController(c.Writer)
	held := a.memory.open(caller(c).UserID, "body", func() {
		cancel()
		_ = control.SetReadDeadline(time.Unix(1, 0)) // who cannot be interrupted is waited for
	})
	leave := func() {}
	done = sync.OnceFunc(func() {
		cancel()
		leave()
		held.close()
	})
	defer func() {
		if err != nil {
			if held.gaveWay() {
				err = errNoPlace
			}
			done()
		}
	}()
	if raw, err = a.gather(ctx, held, c.Request); err != nil {
		return "", done, err
	}
	if int64(len(raw)) > a.opts.LargeBody {
		if leave, err = a.places.enter(ctx, caller(c).UserID); err != nil {
			leave = func() {}
			return "", done, err
		}
	}
	if !held.keep() {
		return "", done, errNoPlace
	}
	return raw, done, nil
}

// gather reads a body in steps, each twice the one before, so that what is held
// is never more than twice what has come.
func (a *API) gather(ctx context.Context, held *hold, r *http.Request) (string, error) {
	most := r.ContentLength
	if most < 0 {
		most = a.opts.MaxBody + 1
	}
	text := &strings.Builder{}
	for room := min(freeOctets, most); ; room = min(2*room, most) {
		if room > freeOctets {
			if err := held.resize(ctx, room); err != nil {
				return "", err
			}
			larger := &strings.Builder{}
			larger.Grow(int(room))
			larger.WriteString(text.String())
			text = larger
		} else {
			text.Grow(int(room))
		}
		if _, err := io.Copy(text, io.LimitReader(counted{r.Body, held}, room-int64(text.Len()))); err != nil {
			return "", err
		}
		switch n := int64(text.Len()); {
		case n > a.opts.MaxBody:
			return "", errTooLarge
		case n < room || n == most:
			return text.String(), nil
		}
	}
}

// tooLarge answers 413. A client that is still sending would not see an answer
// before its own error, so what it sends is taken and thrown away, to a limit;
// one that asked first (Expect: 100-continue) is told at once.
func (a *API) tooLarge(c *gin.Context) {
	if c.GetHeader("Expect") == "" {
		_, _ = io.Copy(io.Discard, io.LimitReader(c.Request.Body, a.opts.MaxBody))
	}
	c.Header("Connection", "close")
	refuse(c, tooLarge)
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
