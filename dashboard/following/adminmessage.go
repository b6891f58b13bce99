package following

import (
	"errors"

	"intumwa/accounts"
	"intumwa/dashboard/web"
)

type adminMessagePage struct {
	*timeline

	CompanyName string // empty: the gateway's own
}

// AdminMessage is GET /admin/messages/:id: a message's timeline without its text and the company's webhook events.
func (ps *Pages) AdminMessage(v *web.Visit) error {
	store := ps.Deps.Operators
	record, err := store.OperatorsByULID(v.Ctx(), v.ULID("id"))
	if err != nil {
		return err
	}
	record.Body = "" // administrators do not need it
	history, err := store.HistoryOf(v.Ctx(), record.ID)
	if err != nil {
		return err
	}
	company, err := ps.Deps.Companies.CompanyByID(v.Ctx(), record.CompanyID)
	if err != nil && !errors.Is(err, accounts.ErrNotFound) { // the gateway's own have none
		return err
	}
	why, err := ps.failures(v, record)
	if err != nil {
		return err
	}
	return v.Render("adminmessage", adminMessagePage{newTimeline(v, record, history, nil, why[0]), company.Name})
}
