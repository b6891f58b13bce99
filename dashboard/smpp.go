package dashboard

import (
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/smppserver/binds"
)

// bindsOnPage is how many binds of the listed keys a page shows.
const bindsOnPage = 200

type smppPage struct {
	listing[keys.SMPPKey]

	Made    []smppMade
	Bound   map[int64]int64       // binds, by key
	Waiting map[int64]binds.Queue // what waits for them, by key
	Binds   []binds.Bind
	More    bool                   // there are more binds
	Keys    map[int64]keys.SMPPKey // of the binds
	Limits  keys.SMPPLimits        // of a new key
}

// smppMade is a new key with its password, which is shown once.
type smppMade struct{ Name, SystemID, Password string }

// smpp is GET /smpp: the company's keys of kind SMPP and their binds.
func (d *Dashboard) smpp(v *visit, t tenant) error {
	p, err := v.smppPage("/smpp", t.Company.ID)
	if err != nil {
		return err
	}
	made, err := v.takeOnce("smpp")
	for line := range strings.Lines(made) {
		m := smppMade{}
		m.SystemID, m.Password, _ = strings.Cut(strings.TrimSpace(line), " ")
		for i := range p.Rows { // on another page of the list its name is missing
			if p.Rows[i].SystemID == m.SystemID {
				m.Name = p.Rows[i].Name
			}
		}
		p.Made = append(p.Made, m)
	}
	v.form().formKey()
	return v.page(err, "smpp", p)
}

// adminSMPP is GET /admin/smpp: the keys of all companies.
func (d *Dashboard) adminSMPP(v *visit) error {
	p, err := v.smppPage("/admin/smpp", 0)
	return v.page(err, "adminsmpp", p)
}

// smppPage reads keys of a company, or with company 0 of all.
func (v *visit) smppPage(path string, company int64) (p smppPage, err error) {
	store := binds.New(v.d.rooms.Pool)
	p.Limits, p.Keys = keys.DefaultSMPP, map[int64]keys.SMPPKey{}
	if p.listing, err = list(v, path, rowsOnPage, func(after int64, limit int) ([]keys.SMPPKey, int64, error) {
		found, err := v.d.rooms.Keys.SMPPKeys(v.ctx(), company, after, limit+1)
		return byID(limit, func(k *keys.SMPPKey) int64 { return k.ID }, found, err)
	}); err != nil {
		return p, err
	}
	ids := make([]int64, len(p.Rows))
	for i, k := range p.Rows {
		ids[i], p.Keys[k.ID] = k.ID, k
	}
	if p.Bound, err = store.Count(v.ctx(), ids); err != nil {
		return p, err
	}
	if p.Waiting, err = store.WaitingFor(v.ctx(), ids); err != nil {
		return p, err
	}
	p.Binds, err = store.List(v.ctx(), ids, 0, bindsOnPage+1)
	if p.More = len(p.Binds) > bindsOnPage; p.More {
		p.Binds = p.Binds[:bindsOnPage]
	}
	return p, err
}

// createSMPPKey is POST /smpp.
func (d *Dashboard) createSMPPKey(v *visit, t tenant) error {
	f := v.form()
	name, networks := f.name("name"), f.networks(f.required("networks"))
	if !f.ok() {
		return d.smpp(v, t)
	}
	_, _, err := v.by().CreateSMPPKey(v.ctx(), t.User.ID, name, networks, keys.SMPPLimits{}, func(tx pgx.Tx, text string) error {
		return d.rooms.Sessions.In(tx).KeepFirst(v.ctx(), v.token, "smpp "+f.formKey(), text)
	})
	switch {
	case errors.Is(err, accounts.ErrExists): // a second click: the next page shows the key
		err = nil
	case errors.Is(err, accounts.ErrTooMany):
		f.notice("keys.many", keys.MaxTokens)
		return d.smpp(v, t)
	case errors.Is(err, accounts.ErrInvalid): // commas alone
		f.refuse("networks", "keys.networks.wrong", keys.MaxNetworks)
		return d.smpp(v, t)
	}
	return v.done(err, "/smpp", "")
}

// revokeSMPPKey is POST /smpp/:id/revoke.
func (d *Dashboard) revokeSMPPKey(v *visit, t tenant) error {
	return v.done(v.revokeOwn(&people.Session{User: t.User, Company: &t.Company}), "/smpp", "flash.revoked")
}

// unbind is POST /smpp/:id/unbind: of one bind, or of all binds of a key.
func (d *Dashboard) unbind(v *visit, t tenant) error {
	_, err := v.by().Unbind(v.ctx(), t.company(), v.id(), v.bind())
	return v.done(err, "/smpp", "flash.unbound")
}

// unbindAny is POST /admin/smpp/:id/unbind.
func (d *Dashboard) unbindAny(v *visit) error {
	_, err := v.by().Unbind(v.ctx(), 0, v.id(), v.bind())
	return v.done(err, "/admin/smpp", "flash.unbound")
}

// bind returns the form's bind; 0 is all of the key, and -1 is none.
func (v *visit) bind() int64 {
	text := v.form().Value("bind")
	id, err := strconv.ParseInt(text, 10, 64)
	if text != "" && (err != nil || id <= 0) {
		return -1
	}
	return id
}

// setSMPPKey is POST /admin/smpp/:id: its limits and networks.
func (d *Dashboard) setSMPPKey(v *visit) error {
	f, change := v.form(), keys.SMPPChange{}
	change.Alphabet = f.Value("alphabet")
	for field, to := range map[string]*int{"sessions": &change.Sessions, "window": &change.Window, "tps": &change.TPS} {
		var err error
		if *to, err = strconv.Atoi(strings.TrimSpace(f.Value(field))); err != nil || *to == 0 { // accounts would read 0 as unchanged
			*to = -1
		}
	}
	networks, err := keys.ParseNetworks(f.Value("networks"))
	if err == nil && len(networks) == 0 {
		err = accounts.ErrInvalid
	}
	if change.Networks = networks; err == nil {
		_, err = v.by().SetSMPPKey(v.ctx(), v.id(), change)
	}
	if errors.Is(err, accounts.ErrInvalid) {
		most := keys.MostSMPP
		f.notice("smpp.limits.wrong", most.Sessions, most.Window, most.TPS, keys.MaxNetworks)
		return d.adminSMPP(v)
	}
	return v.done(err, "/admin/smpp", "flash.smpp.set")
}
