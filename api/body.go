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

// freeOctets is the body size that does not count against BodyMemory: a connection's buffers cost as much anyway.
const freeOctets = 4 << 10

// body reads a request's body and checks its syntax. Valid JSON that is not an
// object counts as an object without fields. For an unusable body it writes the
// response and returns ok false. Call done when nothing refers to the body any
// more: it releases the body's memory and slot.
//
// The order of checks is 413, 415, 400. A body that is refused by its headers is
// not read.
func (a *API) body(c *gin.Context) (raw string, fields value, done func(), ok bool) {
	done = func() {}
	r := c.Request
	if r.ContentLength > a.opts.MaxBody {
		a.refuseTooLarge(c)
		return "", "", done, false
	}
	if !isJSON(c.GetHeader("Content-Type")) {
		if r.ContentLength < 0 { // it may still be too large
			if n, _ := io.Copy(io.Discard, io.LimitReader(r.Body, a.opts.MaxBody+1)); n > a.opts.MaxBody {
				a.refuseTooLarge(c)
				return "", "", done, false
			}
		}
		writeRefusal(c, notJSON)
		return "", "", done, false
	}
	raw, done, err := a.read(c)
	switch {
	case err == nil:
	case errors.Is(err, errTooLarge):
		a.refuseTooLarge(c)
		return "", "", done, false
	case errors.Is(err, errNoSlot):
		c.Header("Connection", "close")
		a.writeUnavailable(c, "waiting to read a large body", err)
		return "", "", done, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Header("Connection", "close")
		writeRefusal(c, tooSlow)
		return "", "", done, false
	default: // truncated, or its chunks are malformed
		c.Header("Connection", "close")
		writeRefusal(c, malformedJSON)
		return "", "", done, false
	}
	fields, valid := parse(raw)
	if !valid {
		done()
		writeRefusal(c, malformedJSON)
		return "", "", func() {}, false
	}
	return raw, fields, done, true
}

var errTooLarge = errors.New("the body is too large")

// read reads the body. Received octets count against BodyMemory; a large body that
// is complete then waits for one of the MaxLargeBodies slots. A Content-Length
// alone reserves nothing. done may be called more than once.
func (a *API) read(c *gin.Context) (raw string, done func(), err error) {
	length := c.Request.ContentLength
	if length >= 0 && length <= freeOctets { // nearly all are this small
		var text strings.Builder
		text.Grow(int(length))
		_, err := io.Copy(&text, io.LimitReader(c.Request.Body, length))
		return text.String(), func() {}, err
	}
	ctx, cancel := context.WithCancel(c.Request.Context())
	control := http.NewResponseController(c.Writer)
	held := a.memory.reserve(caller(c).UserID, "body", func() {
		cancel()
		_ = control.SetReadDeadline(time.Unix(1, 0)) // the error is ignored: a reader that cannot be interrupted is waited for
	})
	leave := func() {}
	done = sync.OnceFunc(func() {
		cancel()
		leave()
		held.close()
	})
	defer func() {
		if err != nil {
			if held.wasAborted() {
				err = errNoSlot
			}
			done()
		}
	}()
	if raw, err = a.gather(ctx, held, c.Request); err != nil {
		return "", done, err
	}
	if int64(len(raw)) > a.opts.LargeBody {
		if leave, err = a.bodySlots.enter(ctx, caller(c).UserID); err != nil {
			leave = func() {}
			return "", done, err
		}
	}
	if !held.makePermanent() {
		return "", done, errNoSlot
	}
	return raw, done, nil
}

// gather reads a body in steps, each twice as large as the one before: the reserved
// memory is at most twice what was received.
func (a *API) gather(ctx context.Context, held *reservation, r *http.Request) (string, error) {
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
		if _, err := io.Copy(text, io.LimitReader(countingReader{r.Body, held}, room-int64(text.Len()))); err != nil {
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

// refuseTooLarge responds with 413. A client that is still sending would see a broken
// connection instead of the response, so the rest of the body is read and discarded,
// up to a limit. A client that sent Expect: 100-continue gets the response at once.
func (a *API) refuseTooLarge(c *gin.Context) {
	if c.GetHeader("Expect") == "" {
		_, _ = io.Copy(io.Discard, io.LimitReader(c.Request.Body, a.opts.MaxBody))
	}
	c.Header("Connection", "close")
	writeRefusal(c, tooLarge)
}

// isJSON accepts application/json with any parameters, and application/*+json.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" ||
		strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}

// slotWait is how long a large body waits for a slot, and any body for memory.
const slotWait = 10 * time.Second

var errNoSlot = errors.New("no slot or memory for a body became free")

// bodySlots limits the large bodies that are processed at the same time: in total,
// and per user, so that one user cannot take all slots.
type bodySlots struct {
	all     chan struct{}
	perUser int

	mu    sync.Mutex
	users map[int64]*userSlots
}

type userSlots struct {
	taken   chan struct{}
	callers int // callers that hold a slot or wait for one
}

func newBodySlots(n int) *bodySlots {
	return &bodySlots{all: make(chan struct{}, n), perUser: max(1, n/4), users: make(map[int64]*userSlots)}
}

// enter waits for a slot and takes it; errNoSlot when none became free within
// slotWait. Call leave exactly once.
func (p *bodySlots) enter(ctx context.Context, user int64) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	own := p.userOf(user)
	if !takeSlot(ctx, own.taken) {
		p.release(user, own)
		return nil, errNoSlot
	}
	if !takeSlot(ctx, p.all) {
		<-own.taken
		p.release(user, own)
		return nil, errNoSlot
	}
	return func() {
		<-p.all
		<-own.taken
		p.release(user, own)
	}, nil
}

func takeSlot(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *bodySlots) userOf(user int64) *userSlots {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.users[user]
	if own == nil {
		own = &userSlots{taken: make(chan struct{}, p.perUser)}
		p.users[user] = own
	}
	own.callers++
	return own
}

func (p *bodySlots) release(user int64, own *userSlots) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.callers--; own.callers == 0 {
		delete(p.users, user)
	}
}
