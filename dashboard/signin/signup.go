package signin

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// SignUp is GET /sign-up.
func (ps *Pages) SignUp(v *web.Visit) error {
	if v.Session != nil && v.Session.Passed {
		return v.Redirect("/", "")
	}
	return v.Render("signup", nil)
}

// RequestSignUp is POST /sign-up: it mails a link. The response does not reveal whether the account exists.
func (ps *Pages) RequestSignUp(v *web.Visit) error {
	f := v.Form()
	name, email := f.Name("name"), ps.Mailed(f, "email")
	if f.OK() && !v.CountTry(ps.Tries.SignUps, "sign-up", v.Network()) {
		f.Deny(http.StatusTooManyRequests, "error.signups")
	}
	if !f.OK() {
		return v.Render("signup", nil)
	}
	token, err := ps.Deps.SignIn.BeginSignUp(v.Ctx(), people.NewUser{Email: email, Name: name, Language: v.Lang.Tag})
	switch {
	case err == nil:
		ps.Mails.signUp(v.Lang, email, token)
	case errors.Is(err, accounts.ErrExists):
		ps.Mails.exists(v.Lang, email)
	case errors.Is(err, accounts.ErrInvalid):
		f.Refuse("email", "error.email")
		return v.Render("signup", nil)
	default:
		return err
	}
	return mailedTo(v, email)
}

// Mailed returns a field with the address of a mail, within the hourly limit. It denies the form if the gateway sends
// no mails.
func (ps *Pages) Mailed(f *web.Form, field string) string {
	email := f.Email(field)
	if f.OK() && !ps.Mails.Mailer.Configured() {
		f.Deny(http.StatusServiceUnavailable, "error.nomails")
	}
	if f.OK() && !ps.allowTry(f.Visit, tryMail, email) {
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

// Sent is GET /sent: it reports that a mail was sent if the address is valid.
func (ps *Pages) Sent(v *web.Visit) error {
	to, _ := v.C.Cookie(v.CookieName(web.SentCookie))
	return v.Page(nil, "sent", to)
}

// FinishSignUp is GET /sign-up/:token. It changes nothing, because mail scanners follow links too.
func (ps *Pages) FinishSignUp(v *web.Visit) error {
	return choose(v, ps.Deps.SignIn.SignUpLink, v.Lang.T("finish.title"), "", "finish.button")
}

// DoSignUp is POST /sign-up/:token.
func (ps *Pages) DoSignUp(v *web.Visit) error {
	return ps.chosen(v, ps.FinishSignUp, ps.Deps.SignIn.SignUpLink, ps.Deps.SignIn.FinishSignUp, "flash.welcome")
}
