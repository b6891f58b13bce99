package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/audit"
	"intumwa/internal/postgres"
)

// adminLasts is how long the administrator scope stays open.
const adminLasts = time.Hour

type enterPage struct {
	TOTP  bool // a code is required, not the password
	SetUp bool // but the user has no second factor yet
}

// enterAdmin is GET /admin/enter: it asks for the password or a code again.
func (d *Dashboard) enterAdmin(v *visit, s *accounts.Session) {
	data, ok := v.enterPage(s)
	if !ok {
		return
	}
	if v.adminOpen() {
		v.redirect("/admin", "")
		return
	}
	v.render(http.StatusOK, "adminenter", data)
}

func (v *visit) enterPage(s *accounts.Session) (data enterPage, ok bool) {
	if !s.User.Administrator {
		v.renderError(http.StatusNotFound)
		return data, false
	}
	state, err := v.d.rooms.Accounts.SecondFactorOf(v.ctx(), s.User.ID)
	if err != nil {
		v.handleError("reading the second factor", err)
		return data, false
	}
	data.TOTP = v.d.opts.AdminTOTP || state.On
	data.SetUp = data.TOTP && !state.On
	return data, true
}

// doEnterAdmin is POST /admin/enter.
func (d *Dashboard) doEnterAdmin(v *visit, s *accounts.Session) {
	f := v.form()
	data, ok := v.enterPage(s)
	if !ok {
		return
	}
	if data.SetUp {
		v.render(http.StatusForbidden, "adminenter", data)
		return
	}
	if data.TOTP {
		ok = v.checkCode(f, "proof", "adminenter", data)
	} else {
		ok = v.checkPassword(f, "proof", "adminenter", data)
	}
	if !ok {
		return
	}
	token, err := d.rooms.Accounts.EnterAdmin(v.ctx(), *s, adminLasts)
	if err != nil {
		v.handleError("entering the administration", err)
		return
	}
	v.setSession(token)
	v.redirect("/admin", "")
}

// checkPassword checks the password in a field. When it is wrong, it renders the page again and returns false.
func (v *visit) checkPassword(f *form, field, page string, data any) bool {
	password := f.required(field)
	if !f.ok() {
		v.renderForm(page, data, f)
		return false
	}
	if !v.allowTry("password change", strconv.FormatInt(v.session.User.ID, 10)) {
		f.notice("error.tries")
		v.renderPage(http.StatusTooManyRequests, page, data, f)
		return false
	}
	v.leave() // hashing may have to wait
	_, err := v.d.rooms.Accounts.Login(v.ctx(), v.session.User.Email, password)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		f.refuse(field, "account.present.wrong")
		v.renderForm(page, data, f)
		return false
	case err != nil:
		v.handleError("checking a password", err)
		return false
	}
	return true
}

// leaveAdmin is POST /admin/leave.
func (d *Dashboard) leaveAdmin(v *visit, s *accounts.Session) {
	if err := d.rooms.Accounts.LeaveAdmin(v.ctx(), *s); err != nil {
		v.handleError("leaving the administration", err)
		return
	}
	v.redirect("/", "flash.left")
}

// change runs work and records the act that it returns, in one transaction (repeatable read): what work reads as the state
// before is the state that it changes. When another transaction interferes, work is called again; it must reset the
// variables that it sets outside itself.
func (d *Dashboard) change(ctx context.Context, o operator, work func(tx pgx.Tx) (audit.Entry, error)) error {
	return d.changeIn(ctx, o, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, work)
}

// changeBusy is change for rows with frequent writes, which work must lock before it reads them.
func (d *Dashboard) changeBusy(ctx context.Context, o operator, work func(tx pgx.Tx) (audit.Entry, error)) error {
	return d.changeIn(ctx, o, pgx.TxOptions{}, work)
}

func (d *Dashboard) changeIn(ctx context.Context, o operator, options pgx.TxOptions, work func(tx pgx.Tx) (audit.Entry, error)) error {
	return postgres.Retry(ctx, func() error {
		return pgx.BeginTxFunc(ctx, d.rooms.Pool, options, func(tx pgx.Tx) error {
			entry, err := work(tx)
			if err != nil {
				return err
			}
			entry.Actor = audit.User(o.User.ID)
			return audit.Record(ctx, tx, entry)
		})
	})
}
