package signin

import (
	"net/http"
	"strings"
	"time"

	"intumwa/dashboard/web"
)

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
// counts from its start, so concurrent tries are limited too; [web.Visit.TriedWell] uncounts it.
func (ps *Pages) allowTry(v *web.Visit, kind, email string) bool {
	t := ps.Tries
	email = strings.ToLower(strings.TrimSpace(email))
	if kind == tryMail {
		return v.CountTry(t.Address, "address", v.Network()) && v.CountTry(t.Mails, kind, email)
	}
	if device := device(v); ps.Deps.SignIn.KnownDevice(v.Ctx(), email, device) {
		return v.CountTry(t.Account, kind, device) && (kind != tryCode || v.CountTry(t.Codes, kind, device))
	}
	if !v.CountTry(t.Address, "address", v.Network()) {
		return false
	}
	if v.CountTry(t.Account, kind, email) && (kind != tryCode || v.CountTry(t.Codes, kind, email)) {
		return true
	}
	if t.Warnings == nil || t.Warnings.Allow(v.Ctx(), web.TryKey("warning", email)).Allowed {
		if err := ps.Deps.SignIn.WarnOfTries(v.Ctx(), email); err != nil {
			ps.Log.Error("a user could not be warned of wrong passwords", "event", "password_warning_not_sent", "error", err)
		}
	}
	return false
}

// device returns the cookie of [people.SignIn.NewDevice], or "".
func device(v *web.Visit) string {
	device, _ := v.C.Cookie(v.CookieName(web.DeviceCookie))
	return device
}

// setDevice marks the browser as one where the user has signed in.
func (ps *Pages) setDevice(v *web.Visit, email string) error {
	device, err := ps.Deps.SignIn.NewDevice(v.Ctx(), email)
	if err == nil {
		v.SetCookie(web.DeviceCookie, device, 365*24*time.Hour)
	}
	return err
}

// allow denies a form after too many tries: see allowTry.
func (ps *Pages) allow(f *web.Form, kind, email string) {
	if f.OK() && !ps.allowTry(f.Visit, kind, email) {
		f.Deny(http.StatusTooManyRequests, "error.tries")
	}
}
