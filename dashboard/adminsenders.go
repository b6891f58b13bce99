package dashboard

import (
	"errors"

	"intumwa/accounts/senders"
	"intumwa/operations"
)

type waitingSendersPage struct {
	listing[senders.SenderRequest]

	Holders          map[int64][]string // by sender: other companies with the same name
	AtCarriers, Late int                // senders that wait for a carrier, and those of more than a week
}

// waitingSenders is GET /admin/senders.
func (d *Dashboard) waitingSenders(v *visit) (err error) {
	var p waitingSendersPage
	if p.listing, err = list(v, "/admin/senders", rowsOnPage, func(before int64, limit int) ([]senders.SenderRequest, int64, error) {
		found, err := d.rooms.Senders.WaitingSenders(v.ctx(), before, limit+1)
		return byID(limit, func(s *senders.SenderRequest) int64 { return s.ID }, found, err)
	}); err != nil {
		return err
	}
	ids := make([]int64, len(p.Rows))
	for i := range p.Rows {
		ids[i] = p.Rows[i].ID
	}
	if p.Holders, err = d.rooms.Senders.Holders(v.ctx(), ids); err != nil {
		return err
	}
	p.AtCarriers, p.Late, err = d.rooms.Senders.WaitingRegistrations(v.ctx())
	return v.page(err, "adminsenders", p)
}

// approveSender is POST /admin/senders/:id/approve. It approves what the page showed.
func (d *Dashboard) approveSender(v *visit) error {
	return v.decideSender(operations.Decision{Approved: true, Version: new(v.form().Value("version"))}, "flash.sender.approved")
}

// withdrawSender is POST /admin/senders/:id/withdraw: it withdraws an approval or refuses a waiting sender.
func (d *Dashboard) withdrawSender(v *visit) error {
	f := v.form()
	reason := f.reason()
	if !f.ok() {
		return d.waitingSenders(v)
	}
	return v.decideSender(operations.Decision{Reason: reason}, "flash.sender.refused")
}

func (v *visit) decideSender(to operations.Decision, flash string) error {
	s, err := v.by().DecideSender(v.ctx(), v.id(), to)
	if errors.Is(err, operations.ErrChanged) {
		return v.redirect(v.returnPath("/admin/senders"), "flash.sender.changed")
	}
	return v.done(err, v.returnPath(companyPath(s.CompanyID)), flash)
}
