package dashboard

import (
	"net/http"
	"strings"

	"intumwa/accounts"
)

type keysPage struct {
	Keys          []accounts.Token
	Made, MadeFor string // a new key, this once, and its name
}

// keys is GET /keys.
func (d *Dashboard) keys(v *visit, s *accounts.Session) {
	data, ok := v.keysPage(s)
	if !ok {
		return
	}
	made, err := v.takeOnce("key")
	if err != nil {
		v.fail("reading a new key", err)
		return
	}
	data.Made, data.MadeFor, _ = strings.Cut(made, "\n")
	v.render(http.StatusOK, "keys", data)
}

// keysPage is false when it has answered for a failure.
func (v *visit) keysPage(s *accounts.Session) (data keysPage, ok bool) {
	var err error
	if data.Keys, err = v.d.rooms.Accounts.TokensOf(v.ctx(), s.User.ID); err != nil {
		v.fail("listing keys", err)
		return data, false
	}
	return data, true
}

// createKey is POST /keys.
func (d *Dashboard) createKey(v *visit, s *accounts.Session) {
	f := v.form()
	if f == nil {
		return
	}
	data, ok := v.keysPage(s)
	if !ok {
		return
	}
	name := f.name("name")
	active := 0
	for _, k := range data.Keys {
		if k.RevokedAt == nil {
			active++
		}
	}
	if active >= accounts.MaxTokens {
		f.notice("keys.many", active)
	}
	if !f.ok() {
		v.again("keys", data, f)
		return
	}
	_, key, err := d.rooms.Accounts.CreateToken(v.ctx(), s.User.Email, name)
	if err == nil {
		err = v.keepOnce("key", key+"\n"+name)
	}
	if err != nil {
		v.fail("creating a key", err)
		return
	}
	v.redirect("/keys", "")
}

// revokeKey is POST /keys/:id/revoke.
func (d *Dashboard) revokeKey(v *visit, s *accounts.Session) {
	if err := d.rooms.Accounts.RevokeTokenOf(v.ctx(), s.User.ID, v.id()); err != nil {
		v.fail("revoking a key", err)
		return
	}
	v.redirect("/keys", "flash.revoked")
}
