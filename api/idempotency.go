package api

import (
	"crypto/sha256"
	"strings"

	"github.com/gin-gonic/gin"

	"intumwa/intake"
)

const maxKey = 255 // characters of an idempotency key

// idempotencyKey reads the Idempotency-Key header: 1 to 255 visible ASCII
// characters (rule choices 1.10); nil when there is none. It answers the client
// itself when the key is unusable.
func idempotencyKey(c *gin.Context, raw string) (key *intake.Key, ok bool) {
	values, given := c.Request.Header["Idempotency-Key"]
	if !given {
		return nil, true
	}
	name := values[0]
	if len(values) > 1 || len(name) < 1 || len(name) > maxKey ||
		strings.IndexFunc(name, func(r rune) bool { return r < '!' || r > '~' }) >= 0 {
		refuse(c, keyInvalid)
		return nil, false
	}
	return &intake.Key{Name: name, Request: fingerprint(c.FullPath(), raw)}, true
}

// fingerprint is what makes two requests the same: the endpoint and the bytes
// of the body.
func fingerprint(endpoint, raw string) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(endpoint))
	h.Write([]byte{0})
	for chunk := [4096]byte{}; raw != ""; { // no second copy of a large body
		n := copy(chunk[:], raw)
		h.Write(chunk[:n])
		raw = raw[n:]
	}
	return [sha256.Size]byte(h.Sum(nil))
}
