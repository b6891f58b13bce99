package dashboard

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
	maxForm        = 64 << 10 // bytes of a form
	maxOpenForm    = 8 << 10  // of one without a session
	requestTimeout = 15 * time.Second
)

// policy limits a page to this site's files, and forbids scripts to write markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// harden sets the security headers of every response.
func (d *Dashboard) harden(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")                   // for browsers without frame-ancestors
	h.Set("Referrer-Policy", "same-origin")            // no-referrer would make forms' Origin null
	h.Set("Cross-Origin-Opener-Policy", "same-origin") // a window that opened this one cannot access it
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store") // assets override this
	if d.opts.SecureCookies {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// uploadRoutes are the routes whose form has a file, and its limits.
var uploadRoutes = map[string]struct {
	size int64
	time time.Duration // with the response
}{"POST /campaigns": {maxUpload, uploadTime}, "POST /company/document": {accounts.MaxDocument + maxForm, documentTime + requestTimeout},
	"POST /admin/registrations/:id/document": {accounts.MaxDocument + maxForm, documentTime + requestTimeout}}

// bound limits a request in time and size.
func bound(c *gin.Context) {
	limit, size := requestTimeout, int64(maxForm)
	if path := c.FullPath(); strings.HasSuffix(path, ".csv") || strings.HasSuffix(path, "/document") {
		limit = downloadTime
	}
	if upload, ok := uploadRoutes[c.Request.Method+" "+c.FullPath()]; ok {
		limit, size = upload.time, upload.size
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), limit)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, size)
	c.Next()
}

// recover turns a panic into an error page without details, and logs it.
func (d *Dashboard) recover(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler { //nolint:errorlint // the sentinel of net/http, compared as net/http does
			panic(p)
		}
		d.log.Error("panic in a handler", "event", "handler_panicked", "method", c.Request.Method, "route", c.FullPath(), "panic", p, "stack", string(debug.Stack()))
		c.Abort()
		if !c.Writer.Written() {
			d.visit(c).fail(failures[http.StatusInternalServerError])
		}
	}()
	c.Next()
}

// sameOrigin refuses changes that pages of other sites request.
func (d *Dashboard) sameOrigin(c *gin.Context) {
	if err := d.crossOrigin.Check(c.Request); err != nil {
		c.Abort()
		d.visit(c).fail(errForbidden)
	}
}

const (
	tryMail     = "mail"            // it sends a mail to the account's address
	tryPassword = "password"        // at the sign-in
	tryPresent  = "password change" // the signed-in user's present password
	tryCode     = "code"            // of a second factor: three codes in a million are valid at a time
)

// allowTry counts a try for the account with that email and for the client's network address, and reports whether it is
// allowed. The result does not depend on whether the account exists.
//
// A browser where the user has signed in before has its own limit, so that strangers cannot lock the user out. A try
// counts from its start, so concurrent tries are limited too; [visit.triedWell] uncounts it.
func (v *visit) allowTry(kind, email string) bool {
	t := v.d.rooms.Tries
	email = strings.ToLower(strings.TrimSpace(email))
	if kind == tryMail {
		return v.countTry(t.Address, "address", v.network()) && v.countTry(t.Mails, kind, email)
	}
	if device := v.device(); v.d.rooms.SignIn.KnownDevice(v.ctx(), email, device) {
		return v.countTry(t.Account, kind, device) && (kind != tryCode || v.countTry(t.Codes, kind, device))
	}
	if !v.countTry(t.Address, "address", v.network()) {
		return false
	}
	if v.countTry(t.Account, kind, email) && (kind != tryCode || v.countTry(t.Codes, kind, email)) {
		return true
	}
	if t.Warnings == nil || t.Warnings.Allow(v.ctx(), tryKey("warning", email)).Allowed {
		if err := v.d.rooms.SignIn.WarnOfTries(v.ctx(), email); err != nil {
			v.d.log.Error("a user could not be warned of wrong passwords", "event", "password_warning_not_sent", "error", err)
		}
	}
	return false
}

// countTry counts a try, and reports whether it is allowed.
func (v *visit) countTry(of *throttle.Throttle, kind, who string) bool {
	if of == nil {
		return true
	}
	key := tryKey(kind, who)
	v.tries = append(v.tries, func() { of.GiveBack(v.ctx(), key) })
	return of.Allow(v.ctx(), key).Allowed
}

// triedWell uncounts this request's tries: the input was right or could not be checked.
func (v *visit) triedWell() {
	for _, giveBack := range v.tries {
		giveBack()
	}
	v.tries = nil
}

// device returns the cookie of [people.SignIn.NewDevice], or "".
func (v *visit) device() string {
	device, _ := v.c.Cookie(v.cookieName(deviceCookie))
	return device
}

// setDevice marks the browser as one where the user has signed in.
func (v *visit) setDevice(email string) error {
	device, err := v.d.rooms.SignIn.NewDevice(v.ctx(), email)
	if err == nil {
		v.setCookie(deviceCookie, device, 365*24*time.Hour)
	}
	return err
}

func tryKey(kind, who string) int64 {
	sum := sha256.Sum256([]byte("dashboard\x00" + kind + "\x00" + who))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// network returns the visitor's network, to count by.
func (v *visit) network() string { return throttle.Network(v.c.ClientIP()) }
