package settings

import (
	"errors"
	"slices"
	"strings"

	"intumwa/accounts"
	"intumwa/accounts/senders"
	"intumwa/dashboard/registered"
	"intumwa/dashboard/web"
	"intumwa/sms"
)

// sendersPage is the page of the sender IDs.
type sendersPage struct {
	Senders []senders.SenderRequest
	At      map[int64][]registered.AtCarrier // by sender, where a carrier requires a registration or something is recorded
	Full    bool                             // the limit of waiting sender IDs is reached
	Most    int                              // the limit of waiting sender IDs
	Keep    int                              // the limit of sender IDs in all
}

// Senders is GET /senders.
func (ps *Pages) Senders(v *web.Visit, t web.Tenant) (err error) {
	data := sendersPage{Most: senders.MaxWaiting, Keep: senders.MaxSenders}
	if data.Senders, err = ps.Deps.Senders.SenderRequestsOf(v.Ctx(), t.CompanyID()); err != nil {
		return err
	}
	recorded, err := ps.Deps.Senders.RegistrationsOf(v.Ctx(), t.CompanyID())
	if err != nil {
		return err
	}
	data.At = map[int64][]registered.AtCarrier{}
	waiting := 0
	for _, s := range data.Senders {
		if at := registered.AtCarriers(ps.Routes(), recorded[s.ID]); s.Approved &&
			slices.ContainsFunc(at, func(c registered.AtCarrier) bool { return c.ID != 0 || !c.Works }) {
			data.At[s.ID] = slices.DeleteFunc(at, func(c registered.AtCarrier) bool { return c.Gone })
		}
		if s.State() == senders.Waiting {
			waiting++
		}
	}
	data.Full = waiting >= senders.MaxWaiting || len(data.Senders) >= senders.MaxSenders
	return v.Render("senders", data)
}

// RequestSender is POST /senders.
func (ps *Pages) RequestSender(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	name := strings.TrimSpace(f.Required("name"))
	if !sms.ValidSender(name) {
		f.Refuse("name", "senders.name.wrong")
	}
	purpose := f.Required("purpose")
	if !f.OK() {
		return ps.Senders(v, t)
	}
	err := ps.By(v).AskForSender(v.Ctx(), t.CompanyID(), name, "BI", purpose)
	switch {
	case err == nil:
		return v.Redirect("/senders", "flash.sender")
	case errors.Is(err, accounts.ErrExists):
		f.Refuse("name", "senders.name.taken")
	case errors.Is(err, accounts.ErrTooMany):
		f.Fail("senders.full", senders.MaxWaiting, senders.MaxSenders)
	case errors.Is(err, accounts.ErrInvalid) && ps.Deps.Senders.IsTestSender(name):
		f.Refuse("name", "senders.name.test")
	case errors.Is(err, accounts.ErrInvalid):
		f.Refuse("purpose", "senders.purpose.wrong", senders.MaxPurpose)
	default:
		return err
	}
	return ps.Senders(v, t)
}
