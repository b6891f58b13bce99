package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/people"
)

// signUp is GET /sign-up.
func (d *Dashboard) signUp(v *visit) error {
	if v.session != nil && v.session.Passed {
		return v.redirect("/", "")
	}
	return v.render("signup", nil)
}

// requestSignUp is POST /sign-up: it mails a link. The response does not reveal whether the account exists.
func (d *Dashboard) requestSignUp(v *visit) error {
	f := v.form()
	name, email := f.name("name"), f.mailed("email")
	if f.ok() && !v.countTry(d.rooms.Tries.SignUps, "sign-up", v.network()) {
		f.deny(http.StatusTooManyRequests, "error.signups")
	}
	if !f.ok() {
		return v.render("signup", nil)
	}
	token, err := d.rooms.SignIn.BeginSignUp(v.ctx(), people.NewUser{Email: email, Name: name, Language: v.lang.Tag})
	switch {
	case err == nil:
		d.mailSignUp(v.lang, email, token)
	case errors.Is(err, accounts.ErrExists):
		d.mailExists(v.lang, email)
	case errors.Is(err, accounts.ErrInvalid):
		f.refuse("email", "error.email")
		return v.render("signup", nil)
	default:
		return err
	}
	return v.mailedTo(email)
}

// mailed returns a field with the address of a mail, within the hourly limit. It denies the form if the gateway sends
// no mails.
func (f *form) mailed(field string) string {
	email := f.email(field)
	if f.ok() && !f.v.d.rooms.Mailer.Configured() {
		f.deny(http.StatusServiceUnavailable, "error.nomails")
	}
	if f.ok() && !f.v.allowTry(tryMail, email) {
		f.deny(http.StatusTooManyRequests, "error.mails")
	}
	return email
}

// mailedTo redirects to the page that names the mail's address. The address is in a cookie, because a link with it
// could be forged.
func (v *visit) mailedTo(email string) error {
	v.setCookie(sentCookie, url.QueryEscape(email), time.Hour)
	return v.redirect("/sent", "")
}

// sent is GET /sent: it reports that a mail was sent if the address is valid.
func (d *Dashboard) sent(v *visit) error {
	to, _ := v.c.Cookie(v.cookieName(sentCookie))
	return v.page(nil, "sent", to)
}

// finishSignUp is GET /sign-up/:token. It changes nothing, because mail scanners follow links too.
func (d *Dashboard) finishSignUp(v *visit) error {
	return v.choose(d.rooms.SignIn.SignUpLink, v.lang.T("finish.title"), "", "finish.button")
}

// doSignUp is POST /sign-up/:token.
func (d *Dashboard) doSignUp(v *visit) error {
	return v.chosen(d.finishSignUp, d.rooms.SignIn.SignUpLink, d.rooms.SignIn.FinishSignUp, "flash.welcome")
}
