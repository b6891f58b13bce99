package api

import (
	"errors"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"golang.org/x/text/encoding/charmap"
)

// freeBytes is the size up to which a body does not count against BodyMemory: a connection's buffers cost as much.
const freeBytes = 4 << 10

// body reads a request's body and checks its syntax. Valid JSON that is not an object counts as an object without
// fields. For an unusable body it writes the response and returns ok false. Call done when nothing refers to the body
// any more: it releases the body's memory.
//
// The order of checks is 413, 415, 400. A body refused by its headers is not read.
func (a *API) body(c *gin.Context) (raw string, root value, done func(), ok bool) {
	r := c.Request
	if !isJSON(c.GetHeader("Content-Type")) && r.ContentLength <= a.opts.MaxBody {
		if r.ContentLength < 0 { // it may still be too large
			if n, _ := io.Copy(io.Discard, io.LimitReader(r.Body, a.opts.MaxBody+1)); n > a.opts.MaxBody {
				a.refuseTooLarge(c)
				return "", "", nil, false
			}
		}
		writeRefusal(c, notJSON)
		return "", "", nil, false
	}
	raw, done, err := a.read(c)
	if err == nil {
		text, refused := decode(raw, charsetOf(c.GetHeader("Content-Type")))
		if refused == nil {
			if root, ok = parse(text); ok {
				return raw, root, done, true
			}
			refused = malformedJSON
		}
		done()
		writeRefusal(c, refused)
		return "", "", nil, false
	}
	if !errors.Is(err, errTooLarge) {
		c.Header("Connection", "close")
	}
	switch {
	case errors.Is(err, errTooLarge):
		a.refuseTooLarge(c)
	case errors.Is(err, errNoMemory):
		a.writeUnavailable(c, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		writeRefusal(c, tooSlow)
	default: // truncated, or its chunks are malformed
		writeRefusal(c, malformedJSON)
	}
	return "", "", nil, false
}

var (
	errTooLarge = errors.New("the body is too large")
	errNoMemory = errors.New("api.body_memory is full")
)

// read reads the body in steps, each twice as large as the one before, so it holds at most twice the memory of what was
// received, whatever Content-Length promises. done may be called more than once, by one goroutine.
func (a *API) read(c *gin.Context) (raw string, done func(), err error) {
	r, user := c.Request, caller(c).UserID
	most := a.opts.MaxBody + 1
	if r.ContentLength >= 0 {
		most = min(r.ContentLength, most)
	}
	var reserved int64
	done = func() {
		if reserved > 0 {
			a.memory.release(user, reserved)
			reserved = 0
		}
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	if r.ContentLength > a.opts.MaxBody {
		return "", done, errTooLarge
	}
	if most <= freeBytes && r.ContentLength >= 0 {
		whole := make([]byte, most)
		_, err := io.ReadFull(r.Body, whole)
		return string(whole), done, err
	}
	text := new(strings.Builder)
	for room := min(freeBytes, most); ; room = min(2*room, most) {
		if room > freeBytes {
			if !a.memory.take(user, room-reserved, "body") {
				return "", done, errNoMemory
			}
			reserved = room
		}
		larger := new(strings.Builder) // text.Grow would allocate more than room
		larger.Grow(int(room))
		larger.WriteString(text.String())
		text = larger
		if _, err := io.Copy(text, io.LimitReader(r.Body, room-int64(text.Len()))); err != nil {
			return "", done, err
		}
		switch n := int64(text.Len()); {
		case n > a.opts.MaxBody:
			return "", done, errTooLarge
		case n < room || n == most:
			return text.String(), done, nil
		}
	}
}

// refuseTooLarge responds with 413. It reads and discards the rest of the body, up to a limit: a client that is still
// sending would see a broken connection instead of the response. A client that sent Expect: 100-continue gets the
// response at once.
func (a *API) refuseTooLarge(c *gin.Context) {
	if c.GetHeader("Expect") == "" {
		_, _ = io.Copy(io.Discard, io.LimitReader(c.Request.Body, a.opts.MaxBody))
	}
	c.Header("Connection", "close")
	writeRefusal(c, tooLarge)
}

// isJSON accepts application/json, the older names of JSON and application/*+json, with any parameters. Samples that
// are copied widely write the parameters in ways of their own: `application/json; utf-8`, `application/json,
// charset=utf-8`.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media := contentType
	if end := strings.IndexAny(media, ";, \t"); end >= 0 {
		media = media[:end]
	}
	switch media = strings.ToLower(media); media {
	case "application/json", "application/x-json", "text/json", "text/x-json":
		return true
	}
	return strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// charsetOf returns the charset of a Content-Type in lower case; "" if it names none.
func charsetOf(contentType string) string {
	_, name, _ := strings.Cut(strings.ToLower(contentType), "charset=")
	if end := strings.IndexAny(name, ";, \t"); end >= 0 {
		name = name[:end]
	}
	return strings.Trim(name, `"'`)
}

// charsets are those of one byte a character that a body may have besides UTF-8.
var charsets = map[string]*charmap.Charmap{
	"iso-8859-1": charmap.Windows1252, // as browsers read it: 0x80 to 0x9F are no letters in ISO 8859-1
	"latin1":     charmap.Windows1252, "windows-1252": charmap.Windows1252, "cp1252": charmap.Windows1252,
	"iso-8859-15": charmap.ISO8859_15,
}

// decode returns a body in UTF-8. JSON is UTF-8 whatever the Content-Type says (RFC 8259), so its charset counts only
// for a body that is not. It needs at most three times the body's memory.
func decode(raw, charset string) (text string, refused *refusal) {
	if utf8.ValidString(raw) {
		return raw, nil
	}
	from, known := charsets[charset]
	if !known {
		return "", notUTF8
	}
	text, err := from.NewDecoder().String(raw)
	if err != nil || strings.ContainsRune(text, utf8.RuneError) {
		return "", notUTF8
	}
	return text, nil
}
