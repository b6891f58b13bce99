package dashboard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/audit"
)

type keysPage struct {
	Keys          []accounts.Token
	Made, MadeFor string // a new key, shown once, and its name
}

// keys is GET /keys.
func (d *Dashboard) keys(v *visit, s *accounts.Session) (err error) {
	var data keysPage
	if data.Keys, err = d.rooms.Accounts.TokensOf(v.ctx(), s.User.ID); err != nil {
		return err
	}
	made, err := v.takeOnce("key")
	if err != nil {
		return err
	}
	data.Made, data.MadeFor, _ = strings.Cut(made, "\n")
	return v.render("keys", data)
}

// createKey is POST /keys.
func (d *Dashboard) createKey(v *visit, s *accounts.Session) error {
	f := v.form()
	name := f.name("name")
	if !f.ok() {
		return d.keys(v, s)
	}
	err := v.changeBusy(func(tx pgx.Tx) (audit.Entry, error) {
		made, key, err := d.rooms.Accounts.In(tx).CreateOwnToken(v.ctx(), s.User.ID, name)
		if err != nil {
			return audit.Entry{}, err
		}
		return audit.Entry{Act: "token.create", Subject: fmt.Sprintf("token %d", made.ID), After: map[string]any{"user_id": s.User.ID, "name": name}},
			v.keepOnceIn(tx, "key", key+"\n"+name)
	})
	switch {
	case errors.Is(err, accounts.ErrTooMany):
		f.notice("keys.many", accounts.MaxTokens)
		return d.keys(v, s)
	case err != nil:
		return err
	}
	return v.redirect("/keys", "")
}

// revokeKey is POST /keys/:id/revoke.
func (d *Dashboard) revokeKey(v *visit, s *accounts.Session) error {
	id := v.id()
	err := v.change(func(tx pgx.Tx) (entry audit.Entry, err error) {
		users := d.rooms.Accounts.In(tx)
		before, err := users.TokenByID(v.ctx(), id)
		if err == nil {
			err = users.RevokeTokenOf(v.ctx(), s.User.ID, id)
		}
		if err != nil || before.RevokedAt != nil {
			return entry, err
		}
		return audit.Entry{Act: "token.revoke", Subject: fmt.Sprintf("token %d", id), Before: map[string]any{"name": before.Name, "revoked": false},
			After: map[string]any{"name": before.Name, "revoked": true}}, nil
	})
	if err != nil {
		return err
	}
	return v.redirect("/keys", "flash.revoked")
}
