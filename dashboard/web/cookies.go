package web

import (
	"net/http"
	"time"
)

// The cookies. Scripts cannot read them. From other sites, browsers send them only when a link is followed.
const (
	SessionCookie  = "session"
	DeviceCookie   = "device"
	LanguageCookie = "language"
	flashCookie    = "flash"
	SentCookie     = "sent" // the recipient of a mailed link
)

// CookieName begins with __Host- if cookies are secure: then no other host, not even one of the same domain, can set
// the cookie (RFC 6265bis, 4.1.3.2). Without HTTPS browsers refuse that name.
func (v *Visit) CookieName(name string) string {
	if v.site.opts.SecureCookies {
		return "__Host-intumwa-" + name
	}
	return "intumwa-" + name
}

// SetCookie sends a cookie that the browser keeps for that long; 0: until it closes.
func (v *Visit) SetCookie(name, value string, lasts time.Duration) {
	http.SetCookie(v.C.Writer, &http.Cookie{ //nolint:gosec // Secure is as configured: a laptop has no HTTPS
		Name: v.CookieName(name), Value: value, Path: "/", MaxAge: int(lasts.Seconds()),
		Secure: v.site.opts.SecureCookies, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// DropCookie deletes a cookie.
func (v *Visit) DropCookie(name string) { v.SetCookie(name, "", -time.Second) }

// SetSession sends the session's cookie. The browser deletes it on closing; the server may end the session earlier.
func (v *Visit) SetSession(token string) { v.SetCookie(SessionCookie, token, 0) }
