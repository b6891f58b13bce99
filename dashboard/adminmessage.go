package dashboard

import (
	"errors"

	"intumwa/accounts"
	"intumwa/dashboard/web"
	"intumwa/messages/lookup"
)

type adminMessagePage struct {
	*timeline

	CompanyName string // empty: the gateway's own
}

// adminMessage is GET /admin/messages/:id: a message's timeline without its text and the company's webhook events.
func (d *Dashboard) adminMessage(v *web.Visit) error {
	store := lookup.New(d.rooms.Pool)
	record, err := store.OperatorsByULID(v.Ctx(), v.ULID("id"))
	if err != nil {
		return err
	}
	record.Body = "" // administrators do not need it
	history, err := store.HistoryOf(v.Ctx(), record.ID)
	if err != nil {
		return err
	}
	company, err := d.rooms.Companies.CompanyByID(v.Ctx(), record.CompanyID)
	if err != nil && !errors.Is(err, accounts.ErrNotFound) { // the gateway's own have none
		return err
	}
	why, err := d.failures(v, record)
	if err != nil {
		return err
	}
	return v.Render("adminmessage", adminMessagePage{newTimeline(v, record, history, nil, why[0]), company.Name})
}
