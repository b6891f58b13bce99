package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"intumwa/accounts"
)

// forgotten is GET /password.
func (d *Dashboard) forgotten(v *visit) { v.render(http.StatusOK, "forgotten", nil) }

// askReset is POST /password: it mails a link. The page is the same whether or not the account exists.
func (d *Dashboard) askReset(v *visit) {
	f := v.form()
	email := f.email("email")
	if f.ok() && !v.allowTry(tryMail, email) {
		f.notice("error.mails")
		v.renderPage(http.StatusTooManyRequests, "forgotten", nil, f)
		return
	}
	if !f.ok() {
		v.renderForm("forgotten", nil, f)
		return
	}
	token, err := d.rooms.Accounts.BeginReset(v.ctx(), email, v.lang.Tag)
	switch {
	case err == nil:
		d.mailReset(v.lang, email, token)
	case !errors.Is(err, accounts.ErrNotFound):
		v.handleError("beginning a change of password", err)
		return
	}
	v.redirect("/sent?to="+url.QueryEscape(email), "")
}

func (v *visit) resetChoice(link accounts.Link) choice {
	return choice{link.Email, v.lang.T("reset.title"), v.lang.T("reset.button"), accounts.MinPassword}
}

// reset is GET /password/:token. It changes nothing, because mail scanners follow links too.
func (d *Dashboard) reset(v *visit) {
	link, err := d.rooms.Accounts.ResetLink(v.ctx(), v.c.Param("token"))
	if err != nil {
		v.linkGone(err)
		return
	}
	v.render(http.StatusOK, "choose", v.resetChoice(link))
}

// doReset is POST /password/:token.
func (d *Dashboard) doReset(v *visit) {
	f := v.form()
	link, err := d.rooms.Accounts.ResetLink(v.ctx(), v.c.Param("token"))
	if err != nil {
		v.linkGone(err)
		return
	}
	password := f.newPassword("password")
	if !f.ok() {
		v.renderForm("choose", v.resetChoice(link), f)
		return
	}
	v.leave() // hashing may have to wait
	user, err := d.rooms.Accounts.FinishReset(v.ctx(), v.c.Param("token"), password)
	if err != nil {
		v.linkGone(err)
		return
	}
	v.openSession(user, "/", "flash.reset")
}

// changePassword is POST /account/password.
func (d *Dashboard) changePassword(v *visit, s *accounts.Session) {
	f := v.form()
	present, password := f.required("present"), f.newPassword("new")
	if f.ok() && !v.allowTry("password change", strconv.FormatInt(s.User.ID, 10)) {
		f.notice("error.tries")
		v.showAccount(http.StatusTooManyRequests, s, f)
		return
	}
	if f.ok() {
		v.leave() // hashing may have to wait
		err := d.rooms.Accounts.ChangePassword(v.ctx(), *s, present, password)
		switch {
		case errors.Is(err, accounts.ErrUnauthenticated):
			f.refuse("present", "account.present.wrong")
		case err != nil:
			v.handleError("changing a password", err)
			return
		default:
			v.redirect("/account", "flash.password")
			return
		}
	}
	v.showAccount(http.StatusUnprocessableEntity, s, f)
}
