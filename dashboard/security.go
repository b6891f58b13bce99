package dashboard

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	maxForm        = 64 << 10 // octets of a form
	requestTimeout = 15 * time.Second
)

// policy lets a page load what comes from here and nothing else, and lets no script write markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// harden sets what holds for every answer.
func (d *Dashboard) harden(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")                   // for browsers that do not know frame-ancestors
	h.Set("Referrer-Policy", "same-origin")            // no-referrer would make forms' Origin null
	h.Set("Cross-Origin-Opener-Policy", "same-origin") // no window that opened this one reaches into it
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store") // assets say otherwise
	if d.opts.SecureCookies {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// longer are the routes that may take longer than a page, and larger those whose forms have a file.
var (
	longer = map[string]time.Duration{"GET /statement.csv": exportTime, "GET /messages.csv": exportTime}
	larger = map[string]int64{"POST /campaigns": maxUpload}
)

// bound gives a request its time and its size.
func bound(c *gin.Context) {
	route := c.Request.Method + " " + c.FullPath()
	limit, size := requestTimeout, int64(maxForm)
	if more, ok := longer[route]; ok {
		limit = more
	}
	if more, ok := larger[route]; ok {
		size = more
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), limit)
	defer cancel()
	c.Set(openEndedKey, c.Request.Context())
	c.Request = c.Request.WithContext(ctx)
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, size)
	c.Next()
}

// recover turns a panic into a page that says nothing of it.
func (d *Dashboard) recover(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler { //nolint:errorlint // the sentinel of net/http, compared as net/http does
			panic(p)
		}
		d.log.Error("panic in a handler", "method", c.Request.Method, "route", c.FullPath(), "panic", p, "stack", string(debug.Stack()))
		c.Abort()
		if !c.Writer.Written() {
			d.visit(c).oops(http.StatusInternalServerError)
		}
	}()
	c.Next()
}

// sameOrigin refuses a change that another site's page asks for.
func (d *Dashboard) sameOrigin(c *gin.Context) {
	if err := d.forged.Check(c.Request); err != nil {
		c.Abort()
		d.visit(c).oops(http.StatusForbidden)
	}
}
