package dashboard

import (
	"errors"
	"slices"
	"strings"

	"intumwa/accounts"
	"intumwa/accounts/senders"
	"intumwa/sms"
)

// sendersPage is the page of the sender IDs.
type sendersPage struct {
	Senders []senders.SenderRequest
	At      map[int64][]atCarrier // by sender, where a carrier requires a registration or something is recorded
	Full    bool                  // the limit of waiting sender IDs is reached
	Most    int                   // the limit of waiting sender IDs
	Keep    int                   // the limit of sender IDs in all
}

// senders is GET /senders.
func (d *Dashboard) senders(v *visit, t tenant) (err error) {
	data := sendersPage{Most: senders.MaxWaiting, Keep: senders.MaxSenders}
	if data.Senders, err = d.rooms.Senders.SenderRequestsOf(v.ctx(), t.company()); err != nil {
		return err
	}
	recorded, err := d.rooms.Senders.RegistrationsOf(v.ctx(), t.company())
	if err != nil {
		return err
	}
	data.At = map[int64][]atCarrier{}
	waiting := 0
	for _, s := range data.Senders {
		if at := v.atCarriers(recorded[s.ID]); s.Approved && slices.ContainsFunc(at, func(c atCarrier) bool { return c.ID != 0 || !c.Works }) {
			data.At[s.ID] = slices.DeleteFunc(at, func(c atCarrier) bool { return c.Gone })
		}
		if s.State() == senders.Waiting {
			waiting++
		}
	}
	data.Full = waiting >= senders.MaxWaiting || len(data.Senders) >= senders.MaxSenders
	return v.render("senders", data)
}

// requestSender is POST /senders.
func (d *Dashboard) requestSender(v *visit, t tenant) error {
	f := v.form()
	name := strings.TrimSpace(f.required("name"))
	if !sms.ValidSender(name) {
		f.refuse("name", "senders.name.wrong")
	}
	purpose := f.required("purpose")
	if !f.ok() {
		return d.senders(v, t)
	}
	err := v.by().AskForSender(v.ctx(), t.company(), name, "BI", purpose)
	switch {
	case err == nil:
		return v.redirect("/senders", "flash.sender")
	case errors.Is(err, accounts.ErrExists):
		f.refuse("name", "senders.name.taken")
	case errors.Is(err, accounts.ErrTooMany):
		f.notice("senders.full", senders.MaxWaiting, senders.MaxSenders)
	case errors.Is(err, accounts.ErrInvalid) && d.rooms.Senders.IsTestSender(name):
		f.refuse("name", "senders.name.test")
	case errors.Is(err, accounts.ErrInvalid):
		f.refuse("purpose", "senders.purpose.wrong", senders.MaxPurpose)
	default:
		return err
	}
	return d.senders(v, t)
}
