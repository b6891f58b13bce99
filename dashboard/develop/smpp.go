package develop

import (
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
	"intumwa/smppserver/binds"
)

// bindsOnPage is how many binds of the listed keys a page shows.
const bindsOnPage = 200

type smppPage struct {
	web.Listing[keys.SMPPKey]

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

// SMPP is GET /smpp: the company's keys of kind SMPP and their binds.
func (ps *Pages) SMPP(v *web.Visit, t web.Tenant) error {
	p, err := ps.smppPage(v, "/smpp", t.Company.ID)
	if err != nil {
		return err
	}
	made, err := v.TakeOnce("smpp")
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
	v.Form().FormKey()
	return v.Page(err, "smpp", p)
}

// AdminSMPP is GET /admin/smpp: the keys of all companies.
func (ps *Pages) AdminSMPP(v *web.Visit) error {
	p, err := ps.smppPage(v, "/admin/smpp", 0)
	return v.Page(err, "adminsmpp", p)
}

// smppPage reads keys of a company, or with company 0 of all.
func (ps *Pages) smppPage(v *web.Visit, path string, company int64) (p smppPage, err error) {
	store := ps.Deps.Binds
	p.Limits, p.Keys = keys.DefaultSMPP, map[int64]keys.SMPPKey{}
	if p.Listing, err = web.List(v, path, web.RowsOnPage, func(after int64, limit int) ([]keys.SMPPKey, int64, error) {
		found, err := ps.Deps.Keys.SMPPKeys(v.Ctx(), company, after, limit+1)
		return web.ByID(limit, func(k *keys.SMPPKey) int64 { return k.ID }, found, err)
	}); err != nil {
		return p, err
	}
	ids := make([]int64, len(p.Rows))
	for i, k := range p.Rows {
		ids[i], p.Keys[k.ID] = k.ID, k
	}
	if p.Bound, err = store.Count(v.Ctx(), ids); err != nil {
		return p, err
	}
	if p.Waiting, err = store.WaitingFor(v.Ctx(), ids); err != nil {
		return p, err
	}
	p.Binds, err = store.List(v.Ctx(), ids, 0, bindsOnPage+1)
	if p.More = len(p.Binds) > bindsOnPage; p.More {
		p.Binds = p.Binds[:bindsOnPage]
	}
	return p, err
}

// CreateSMPPKey is POST /smpp.
func (ps *Pages) CreateSMPPKey(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	name, networks := f.Name("name"), networks(f, f.Required("networks"))
	if !f.OK() {
		return ps.SMPP(v, t)
	}
	_, _, err := ps.By(v).CreateSMPPKey(v.Ctx(), t.User.ID, name, networks, keys.SMPPLimits{},
		func(tx pgx.Tx, text string) error {
			return v.KeepFirst(tx, "smpp "+f.FormKey(), text)
		})
	switch {
	case errors.Is(err, accounts.ErrExists): // a second click: the next page shows the key
		err = nil
	case errors.Is(err, accounts.ErrTooMany):
		f.Fail("keys.many", keys.MaxTokens)
		return ps.SMPP(v, t)
	case errors.Is(err, accounts.ErrInvalid): // commas alone
		f.Refuse("networks", "keys.networks.wrong", keys.MaxNetworks)
		return ps.SMPP(v, t)
	}
	return v.Done(err, "/smpp", "")
}

// RevokeSMPPKey is POST /smpp/:id/revoke.
func (ps *Pages) RevokeSMPPKey(v *web.Visit, t web.Tenant) error {
	return v.Done(ps.revokeOwn(v, &people.Session{User: t.User, Company: &t.Company}), "/smpp", "flash.revoked")
}

// Unbind is POST /smpp/:id/unbind: of one bind, or of all binds of a key.
func (ps *Pages) Unbind(v *web.Visit, t web.Tenant) error {
	_, err := ps.By(v).Unbind(v.Ctx(), t.CompanyID(), v.ID(), bind(v))
	return v.Done(err, "/smpp", "flash.unbound")
}

// UnbindAny is POST /admin/smpp/:id/unbind.
func (ps *Pages) UnbindAny(v *web.Visit) error {
	_, err := ps.By(v).Unbind(v.Ctx(), 0, v.ID(), bind(v))
	return v.Done(err, "/admin/smpp", "flash.unbound")
}

// bind returns the form's bind; 0 is all of the key, and -1 is none.
func bind(v *web.Visit) int64 {
	text := v.Form().Value("bind")
	id, err := strconv.ParseInt(text, 10, 64)
	if text != "" && (err != nil || id <= 0) {
		return -1
	}
	return id
}

// SetSMPPKey is POST /admin/smpp/:id: its limits and networks.
func (ps *Pages) SetSMPPKey(v *web.Visit) error {
	f, change := v.Form(), keys.SMPPChange{}
	change.Alphabet = f.Value("alphabet")
	for field, to := range map[string]*int{"sessions": &change.Sessions, "window": &change.Window, "tps": &change.TPS} {
		var err error
		if *to, err = strconv.Atoi(strings.TrimSpace(f.Value(field))); err != nil || *to == 0 {
			// accounts would read 0 as unchanged
			*to = -1
		}
	}
	networks, err := keys.ParseNetworks(f.Value("networks"))
	if err == nil && len(networks) == 0 {
		err = accounts.ErrInvalid
	}
	if change.Networks = networks; err == nil {
		_, err = ps.By(v).SetSMPPKey(v.Ctx(), v.ID(), change)
	}
	if errors.Is(err, accounts.ErrInvalid) {
		most := keys.MostSMPP
		f.Fail("smpp.limits.wrong", most.Sessions, most.Window, most.TPS, keys.MaxNetworks)
		return ps.AdminSMPP(v)
	}
	return v.Done(err, "/admin/smpp", "flash.smpp.set")
}
