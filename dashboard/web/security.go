package web

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/internal/throttle"
)

const (
	MaxForm        = 64 << 10 // bytes of a form
	MaxOpenForm    = 8 << 10  // of one without a session
	RequestTimeout = 15 * time.Second
)

// Policy limits a page to this site's files, and forbids scripts to write markup.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// harden sets the security headers of every response.
func (s *Site) harden(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")                   // for browsers without frame-ancestors
	h.Set("Referrer-Policy", "same-origin")            // no-referrer would make forms' Origin null
	h.Set("Cross-Origin-Opener-Policy", "same-origin") // a window that opened this one cannot access it
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store") // assets override this
	if s.opts.SecureCookies {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// Upload is the limits of a form with a file.
type Upload struct {
	Size int64
	Time time.Duration // with the response
}

// DocumentUpload is the limits of a form with a document.
var DocumentUpload = Upload{accounts.MaxDocument + MaxForm, documentTime + RequestTimeout}

// bound limits a request in time and size.
func (s *Site) bound(c *gin.Context) {
	limit, size := RequestTimeout, int64(MaxForm)
	if path := c.FullPath(); strings.HasSuffix(path, ".csv") || strings.HasSuffix(path, ".xlsx") ||
		strings.HasSuffix(path, "/document") {
		limit = downloadTime
	}
	if upload, ok := s.opts.Uploads[c.Request.Method+" "+c.FullPath()]; ok {
		limit, size = upload.Time, upload.Size
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), limit)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, size)
	c.Next()
}

// recover turns a panic into an error page without details, and logs it.
func (s *Site) recover(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler { //nolint:errorlint // the sentinel of net/http, compared as net/http does
			panic(p)
		}
		s.opts.Log.Error("panic in a handler", "event", "handler_panicked", "method", c.Request.Method, "route", c.FullPath(),
			"panic", p, "stack", string(debug.Stack()))
		c.Abort()
		if !c.Writer.Written() {
			s.visit(c).fail(failures[http.StatusInternalServerError])
		}
	}()
	c.Next()
}

// sameOrigin refuses changes that pages of other sites request.
func (s *Site) sameOrigin(c *gin.Context) {
	if err := s.crossOrigin.Check(c.Request); err != nil {
		c.Abort()
		s.visit(c).fail(errForbidden)
	}
}

// CountTry counts a try, and reports whether it is allowed.
func (v *Visit) CountTry(of *throttle.Throttle, kind, who string) bool {
	if of == nil {
		return true
	}
	key := TryKey(kind, who)
	v.tries = append(v.tries, func() { of.GiveBack(v.Ctx(), key) })
	return of.Allow(v.Ctx(), key).Allowed
}

// TriedWell uncounts this request's tries: the input was right or could not be checked.
func (v *Visit) TriedWell() {
	for _, giveBack := range v.tries {
		giveBack()
	}
	v.tries = nil
}

// TryKey identifies who takes a turn or makes a try of that kind.
func TryKey(kind, who string) int64 {
	sum := sha256.Sum256([]byte("dashboard\x00" + kind + "\x00" + who))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// Network returns the visitor's network, to count by.
func (v *Visit) Network() string { return throttle.Network(v.C.ClientIP()) }
