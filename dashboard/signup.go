package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// signUp is GET /sign-up.
func (d *Dashboard) signUp(v *web.Visit) error {
	if v.Session != nil && v.Session.Passed {
		return v.Redirect("/", "")
	}
	return v.Render("signup", nil)
}

// requestSignUp is POST /sign-up: it mails a link. The response does not reveal whether the account exists.
func (d *Dashboard) requestSignUp(v *web.Visit) error {
	f := v.Form()
	name, email := f.Name("name"), d.mailed(f, "email")
	if f.OK() && !v.CountTry(d.rooms.Tries.SignUps, "sign-up", v.Network()) {
		f.Deny(http.StatusTooManyRequests, "error.signups")
	}
	if !f.OK() {
		return v.Render("signup", nil)
	}
	token, err := d.rooms.SignIn.BeginSignUp(v.Ctx(), people.NewUser{Email: email, Name: name, Language: v.Lang.Tag})
	switch {
	case err == nil:
		d.mails.signUp(v.Lang, email, token)
	case errors.Is(err, accounts.ErrExists):
		d.mails.exists(v.Lang, email)
	case errors.Is(err, accounts.ErrInvalid):
		f.Refuse("email", "error.email")
		return v.Render("signup", nil)
	default:
		return err
	}
	return mailedTo(v, email)
}

// mailed returns a field with the address of a mail, within the hourly limit. It denies the form if the gateway sends
// no mails.
func (d *Dashboard) mailed(f *web.Form, field string) string {
	email := f.Email(field)
	if f.OK() && !d.mails.mailer.Configured() {
		f.Deny(http.StatusServiceUnavailable, "error.nomails")
	}
	if f.OK() && !d.allowTry(f.Visit, tryMail, email) {
		f.Deny(http.StatusTooManyRequests, "error.mails")
	}
	return email
}

// mailedTo redirects to the page that names the mail's address. The address is in a cookie, because a link with it
// could be forged.
func mailedTo(v *web.Visit, email string) error {
	v.SetCookie(web.SentCookie, url.QueryEscape(email), time.Hour)
	return v.Redirect("/sent", "")
}

// sent is GET /sent: it reports that a mail was sent if the address is valid.
func (d *Dashboard) sent(v *web.Visit) error {
	to, _ := v.C.Cookie(v.CookieName(web.SentCookie))
	return v.Page(nil, "sent", to)
}

// finishSignUp is GET /sign-up/:token. It changes nothing, because mail scanners follow links too.
func (d *Dashboard) finishSignUp(v *web.Visit) error {
	return choose(v, d.rooms.SignIn.SignUpLink, v.Lang.T("finish.title"), "", "finish.button")
}

// doSignUp is POST /sign-up/:token.
func (d *Dashboard) doSignUp(v *web.Visit) error {
	return d.chosen(v, d.finishSignUp, d.rooms.SignIn.SignUpLink, d.rooms.SignIn.FinishSignUp, "flash.welcome")
}
