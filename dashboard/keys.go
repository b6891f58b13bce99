package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/audit"
	"intumwa/sms"
)

type keysPage struct {
	Keys          []accounts.Token
	Made, MadeFor string // a new key, shown once, and its name
}

// keys is GET /keys.
func (d *Dashboard) keys(v *visit, s *accounts.Session) {
	data, ok := v.keysPage(s)
	if !ok {
		return
	}
	made, err := v.takeOnce("key")
	if err != nil {
		v.handleError("reading a new key", err)
		return
	}
	data.Made, data.MadeFor, _ = strings.Cut(made, "\n")
	v.render(http.StatusOK, "keys", data)
}

// keysPage reads the page's data. On an error it writes the response and returns false.
func (v *visit) keysPage(s *accounts.Session) (data keysPage, ok bool) {
	var err error
	if data.Keys, err = v.d.rooms.Accounts.TokensOf(v.ctx(), s.User.ID); err != nil {
		v.handleError("listing keys", err)
		return data, false
	}
	return data, true
}

// createKey is POST /keys.
func (d *Dashboard) createKey(v *visit, s *accounts.Session) {
	f := v.form()
	data, ok := v.keysPage(s)
	if !ok {
		return
	}
	name := f.name("name")
	if !f.ok() {
		v.renderForm("keys", data, f)
		return
	}
	err := pgx.BeginFunc(v.ctx(), d.rooms.Pool, func(tx pgx.Tx) error {
		made, key, err := d.rooms.Accounts.In(tx).CreateOwnToken(v.ctx(), s.User.ID, name)
		if err != nil {
			return err
		}
		if err := v.keepOnceIn(tx, "key", key+"\n"+name); err != nil {
			return err
		}
		return audit.Record(v.ctx(), tx, audit.Entry{Actor: audit.User(s.User.ID), Act: "token.create", Subject: fmt.Sprintf("token %d", made.ID),
			Company: companyOf(s), After: map[string]any{"user_id": s.User.ID, "name": name}})
	})
	switch {
	case errors.Is(err, accounts.ErrTooMany):
		f.notice("keys.many", accounts.MaxTokens)
		v.renderForm("keys", data, f)
	case err != nil:
		v.handleError("creating a key", err)
	default:
		v.redirect("/keys", "")
	}
}

// revokeKey is POST /keys/:id/revoke.
func (d *Dashboard) revokeKey(v *visit, s *accounts.Session) {
	id := v.id()
	err := pgx.BeginFunc(v.ctx(), d.rooms.Pool, func(tx pgx.Tx) error {
		users := d.rooms.Accounts.In(tx)
		before, err := users.TokenByID(v.ctx(), id)
		if err != nil {
			return err
		}
		if err := users.RevokeTokenOf(v.ctx(), s.User.ID, id); err != nil || before.RevokedAt != nil {
			return err
		}
		return audit.Record(v.ctx(), tx, audit.Entry{Actor: audit.User(s.User.ID), Act: "token.revoke", Subject: fmt.Sprintf("token %d", id),
			Company: companyOf(s), Before: map[string]any{"name": before.Name, "revoked": false},
			After: map[string]any{"name": before.Name, "revoked": true}})
	})
	if err != nil {
		v.handleError("revoking a key", err)
		return
	}
	v.redirect("/keys", "flash.revoked")
}

// companyOf returns the company of the signed-in user, for the audit log; 0 when there is none.
func companyOf(s *accounts.Session) sms.CompanyID {
	if s.Company == nil {
		return 0
	}
	return sms.CompanyID(s.Company.ID)
}
