package dashboard

import (
	"net/http"
	"time"
)

// The cookies. None can be read by scripts or goes along with other sites' requests other than links.
const (
	sessionCookie  = "session"
	languageCookie = "language"
	flashCookie    = "flash"
)

// cookieName begins with __Host- where cookies are secure: then no other site, not even one on the same domain, can set
// it (RFC 6265bis, 4.1.3.2). Without HTTPS browsers refuse that name.
func (v *visit) cookieName(name string) string {
	if v.d.opts.SecureCookies {
		return "__Host-intumwa-" + name
	}
	return "intumwa-" + name
}

func (v *visit) setCookie(name, value string, lasts time.Duration) {
	http.SetCookie(v.c.Writer, &http.Cookie{ //nolint:gosec // Secure is as configured: a laptop has no HTTPS
		Name: v.cookieName(name), Value: value, Path: "/", MaxAge: int(lasts.Seconds()),
		Secure: v.d.opts.SecureCookies, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

func (v *visit) dropCookie(name string) { v.setCookie(name, "", -time.Second) }

// setSession hands the browser its session. It ends with the browser, or before, when the server says so.
func (v *visit) setSession(token string) { v.setCookie(sessionCookie, token, 0) }
