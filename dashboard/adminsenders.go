package dashboard

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/audit"
	"intumwa/sms"
)

type waitingSendersPage struct {
	listing[accounts.SenderRequest]

	Holders map[int64][]string // by sender: other companies with the same name
}

// waitingSenders is GET /admin/senders.
func (d *Dashboard) waitingSenders(v *visit) (err error) {
	var p waitingSendersPage
	if p.listing, err = list(v, "/admin/senders", rowsOnPage, func(before int64, limit int) ([]accounts.SenderRequest, int64, error) {
		found, err := d.rooms.Accounts.WaitingSenders(v.ctx(), before, limit+1)
		return byID(limit, func(s *accounts.SenderRequest) int64 { return s.ID }, found, err)
	}); err != nil {
		return err
	}
	ids := make([]int64, len(p.Rows))
	for i := range p.Rows {
		ids[i] = p.Rows[i].ID
	}
	p.Holders, err = d.rooms.Accounts.Holders(v.ctx(), ids)
	return v.page(err, "adminsenders", p)
}

// approveSender is POST /admin/senders/:id/approve.
func (d *Dashboard) approveSender(v *visit) error {
	return v.setSender(true, "", "flash.sender.approved")
}

// withdrawSender is POST /admin/senders/:id/withdraw: it withdraws an approval or refuses a waiting sender.
func (d *Dashboard) withdrawSender(v *visit) error {
	f := v.form()
	reason := f.reason()
	if !f.ok() {
		return d.waitingSenders(v)
	}
	return v.setSender(false, reason, "flash.sender.refused")
}

type recordedSender struct {
	Name     string `json:"name"`
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitempty"`
}

func (v *visit) setSender(approved bool, reason, flash string) error {
	id := v.id()
	var company int64
	err := v.change(func(tx pgx.Tx) (audit.Entry, error) {
		users := v.d.rooms.Accounts.In(tx)
		before, err := users.SenderByID(v.ctx(), id)
		if err != nil {
			return audit.Entry{}, err
		}
		company = before.CompanyID
		if approved {
			_, err = users.SetSender(v.ctx(), id, true)
		} else { // the company reads the reason
			_, err = users.RefuseSender(v.ctx(), id, reason)
		}
		return audit.Entry{Act: "sender.set", Subject: fmt.Sprintf("sender %d", id), Company: sms.CompanyID(company),
			Before: recordedSender{before.Name, before.Approved, ""}, After: recordedSender{before.Name, approved, reason}}, err
	})
	return v.done(err, v.returnPath(companyPath(company)), flash)
}
