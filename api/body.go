package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"intumwa/intake"
)

// body reads a send request's body and decodes it. Valid JSON that is no
// object is an object without fields. It answers the client itself when there
// is nothing to work with; ok is false then.
func (a *API) body(c *gin.Context) (fields map[string]any, raw []byte, ok bool) {
	if c.Request.ContentLength > a.opts.MaxBody {
		say(c, http.StatusRequestEntityTooLarge, "The request body is too large.")
		return nil, nil, false
	}
	raw, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, a.opts.MaxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		say(c, http.StatusRequestEntityTooLarge, "The request body is too large.")
		return nil, nil, false
	}
	if !isJSON(c.GetHeader("Content-Type")) {
		say(c, http.StatusUnsupportedMediaType, "The Content-Type must be application/json.")
		return nil, nil, false
	}
	fields, valid := decode(raw)
	if err != nil || !valid {
		say(c, http.StatusBadRequest, "The request body is not valid JSON.")
		return nil, nil, false
	}
	return fields, raw, true
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

// maxDepth bounds the nesting of a body: the deepest legal one has four levels.
const maxDepth = 32

// decode reads one JSON value. Keys are matched exactly, the last of equal
// ones wins.
func decode(raw []byte) (fields map[string]any, ok bool) {
	if !utf8.Valid(raw) || tooDeep(raw) {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil, false
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	fields, _ = v.(map[string]any)
	return fields, true
}

// tooDeep looks at brackets outside strings only.
func tooDeep(raw []byte) bool {
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case inString && b == '\\':
			i++
		case b == '"':
			inString = !inString
		case inString:
		case b == '{' || b == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return false
}

// idempotencyKey reads the Idempotency-Key header; nil when there is none. It
// answers the client itself when the key is unusable.
func idempotencyKey(c *gin.Context, raw []byte) (key *intake.Key, ok bool) {
	values, given := c.Request.Header["Idempotency-Key"]
	if !given {
		return nil, true
	}
	name := values[0]
	if len(values) > 1 || len(name) < 1 || len(name) > 255 || strings.IndexFunc(name, func(r rune) bool { return r < 0x21 || r > 0x7E }) >= 0 {
		say(c, http.StatusBadRequest, "The Idempotency-Key header is not valid.")
		return nil, false
	}
	h := sha256.New()
	h.Write([]byte(c.FullPath()))
	h.Write([]byte{0})
	h.Write(raw)
	key = &intake.Key{Name: name}
	h.Sum(key.Request[:0])
	return key, true
}
