package dashboard

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

// senders is GET /senders.
func (d *Dashboard) senders(v *web.Visit, t web.Tenant) (err error) {
	data := sendersPage{Most: senders.MaxWaiting, Keep: senders.MaxSenders}
	if data.Senders, err = d.rooms.Senders.SenderRequestsOf(v.Ctx(), t.CompanyID()); err != nil {
		return err
	}
	recorded, err := d.rooms.Senders.RegistrationsOf(v.Ctx(), t.CompanyID())
	if err != nil {
		return err
	}
	data.At = map[int64][]registered.AtCarrier{}
	waiting := 0
	for _, s := range data.Senders {
		if at := registered.AtCarriers(d.rooms.Intake.Routes(), recorded[s.ID]); s.Approved && slices.ContainsFunc(at, func(c registered.AtCarrier) bool { return c.ID != 0 || !c.Works }) {
			data.At[s.ID] = slices.DeleteFunc(at, func(c registered.AtCarrier) bool { return c.Gone })
		}
		if s.State() == senders.Waiting {
			waiting++
		}
	}
	data.Full = waiting >= senders.MaxWaiting || len(data.Senders) >= senders.MaxSenders
	return v.Render("senders", data)
}

// requestSender is POST /senders.
func (d *Dashboard) requestSender(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	name := strings.TrimSpace(f.Required("name"))
	if !sms.ValidSender(name) {
		f.Refuse("name", "senders.name.wrong")
	}
	purpose := f.Required("purpose")
	if !f.OK() {
		return d.senders(v, t)
	}
	err := d.by(v).AskForSender(v.Ctx(), t.CompanyID(), name, "BI", purpose)
	switch {
	case err == nil:
		return v.Redirect("/senders", "flash.sender")
	case errors.Is(err, accounts.ErrExists):
		f.Refuse("name", "senders.name.taken")
	case errors.Is(err, accounts.ErrTooMany):
		f.Fail("senders.full", senders.MaxWaiting, senders.MaxSenders)
	case errors.Is(err, accounts.ErrInvalid) && d.rooms.Senders.IsTestSender(name):
		f.Refuse("name", "senders.name.test")
	case errors.Is(err, accounts.ErrInvalid):
		f.Refuse("purpose", "senders.purpose.wrong", senders.MaxPurpose)
	default:
		return err
	}
	return d.senders(v, t)
}
