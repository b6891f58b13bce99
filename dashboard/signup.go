package dashboard

import (
	"errors"
	"net/http"
	"net/url"

	"intumwa/accounts"
)

// signUp is GET /sign-up.
func (d *Dashboard) signUp(v *visit) {
	if v.session != nil && v.session.Passed {
		v.redirect("/", "")
		return
	}
	v.render(http.StatusOK, "signup", nil)
}

// askSignUp is POST /sign-up: it mails a link. The page is the same whether or not the account exists.
func (d *Dashboard) askSignUp(v *visit) {
	f := v.form()
	name, email := f.name("name"), f.email("email")
	if f.ok() && !v.allowTry(tryMail, email) {
		f.notice("error.mails")
		v.renderPage(http.StatusTooManyRequests, "signup", nil, f)
		return
	}
	if !f.ok() {
		v.renderForm("signup", nil, f)
		return
	}
	token, err := d.rooms.Accounts.BeginSignUp(v.ctx(), accounts.NewUser{Email: email, Name: name, Language: v.lang.Tag})
	switch {
	case err == nil:
		d.mailSignUp(v.lang, email, token)
	case errors.Is(err, accounts.ErrExists):
		d.mailExists(v.lang, email)
	case errors.Is(err, accounts.ErrInvalid):
		f.refuse("email", "error.email")
		v.renderForm("signup", nil, f)
		return
	default:
		v.handleError("beginning a sign-up", err)
		return
	}
	v.redirect("/sent?to="+url.QueryEscape(email), "")
}

// sent is GET /sent: it says that a mail was sent if the address is valid.
func (d *Dashboard) sent(v *visit) {
	to := v.c.Query("to")
	if len(to) > 254 {
		to = ""
	}
	v.render(http.StatusOK, "sent", to)
}

// choice is the page of a mailed link, for choosing a password.
type choice struct {
	Email, Title, Button string
	Least                int
}

// finishSignUp is GET /sign-up/:token. It changes nothing, because mail scanners follow links too.
func (d *Dashboard) finishSignUp(v *visit) {
	link, err := d.rooms.Accounts.SignUpLink(v.ctx(), v.c.Param("token"))
	if err != nil {
		v.linkGone(err)
		return
	}
	v.render(http.StatusOK, "choose", v.signUpChoice(link))
}

func (v *visit) signUpChoice(link accounts.Link) choice {
	return choice{link.Email, v.lang.T("finish.title"), v.lang.T("finish.button"), accounts.MinPassword}
}

// linkGone responds to an invalid link.
func (v *visit) linkGone(err error) {
	if !errors.Is(err, accounts.ErrNotFound) && !errors.Is(err, accounts.ErrExists) {
		v.handleError("following a link", err)
		return
	}
	v.render(http.StatusNotFound, "error", struct{ Title, Text string }{v.lang.T("link.gone.title"), v.lang.T("link.gone.text")})
}

// doSignUp is POST /sign-up/:token.
func (d *Dashboard) doSignUp(v *visit) {
	f := v.form()
	link, err := d.rooms.Accounts.SignUpLink(v.ctx(), v.c.Param("token"))
	if err != nil {
		v.linkGone(err)
		return
	}
	password := f.newPassword("password")
	if !f.ok() {
		v.renderForm("choose", v.signUpChoice(link), f)
		return
	}
	v.leave() // hashing may have to wait
	user, err := d.rooms.Accounts.FinishSignUp(v.ctx(), v.c.Param("token"), password)
	if err != nil {
		v.linkGone(err)
		return
	}
	v.openSession(user, "/", "flash.welcome")
}

// newPassword returns a field with a new password.
func (f *form) newPassword(field string) string {
	password := f.required(field)
	if n := len([]rune(password)); n < accounts.MinPassword || len(password) > 1024 {
		f.refuse(field, "finish.short", accounts.MinPassword)
	}
	return password
}
