package administration

import (
	"errors"

	"intumwa/accounts/senders"
	"intumwa/dashboard/web"
	"intumwa/operations"
)

type waitingSendersPage struct {
	web.Listing[senders.SenderRequest]

	Holders          map[int64][]string // by sender: other companies with the same name
	AtCarriers, Late int                // senders that wait for a carrier, and those of more than a week
}

// WaitingSenders is GET /admin/senders.
func (ps *Pages) WaitingSenders(v *web.Visit) (err error) {
	var p waitingSendersPage
	if p.Listing, err = web.List(v, "/admin/senders", web.RowsOnPage,
		func(before int64, limit int) ([]senders.SenderRequest, int64, error) {
			found, err := ps.Deps.Senders.WaitingSenders(v.Ctx(), before, limit+1)
			return web.ByID(limit, func(s *senders.SenderRequest) int64 { return s.ID }, found, err)
		}); err != nil {
		return err
	}
	ids := make([]int64, len(p.Rows))
	for i := range p.Rows {
		ids[i] = p.Rows[i].ID
	}
	if p.Holders, err = ps.Deps.Senders.Holders(v.Ctx(), ids); err != nil {
		return err
	}
	p.AtCarriers, p.Late, err = ps.Deps.Senders.WaitingRegistrations(v.Ctx())
	return v.Page(err, "adminsenders", p)
}

// ApproveSender is POST /admin/senders/:id/approve. It approves what the page showed.
func (ps *Pages) ApproveSender(v *web.Visit) error {
	return ps.decideSender(v, operations.Decision{Approved: true, Version: new(v.Form().Value("version"))},
		"flash.sender.approved")
}

// WithdrawSender is POST /admin/senders/:id/withdraw: it withdraws an approval or refuses a waiting sender.
func (ps *Pages) WithdrawSender(v *web.Visit) error {
	f := v.Form()
	reason := reason(f)
	if !f.OK() {
		return ps.WaitingSenders(v)
	}
	return ps.decideSender(v, operations.Decision{Reason: reason}, "flash.sender.refused")
}

func (ps *Pages) decideSender(v *web.Visit, to operations.Decision, flash string) error {
	s, err := ps.By(v).DecideSender(v.Ctx(), v.ID(), to)
	if errors.Is(err, operations.ErrChanged) {
		return v.Redirect(returnPath(v, "/admin/senders"), "flash.sender.changed")
	}
	return v.Done(err, returnPath(v, web.CompanyPath(s.CompanyID)), flash)
}
