package dashboard

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/audit"
	"intumwa/sms"
)

const sendersOnPage = 50

type waitingSendersPage struct {
	Senders []accounts.SenderRequest
	Next    int64
}

// waitingSenders is GET /admin/senders.
func (d *Dashboard) waitingSenders(v *visit, _ operator) { v.showSenders(http.StatusOK, v.newForm()) }

func (v *visit) showSenders(status int, f *form) {
	list, err := v.d.rooms.Accounts.WaitingSenders(v.ctx(), v.after("after"), sendersOnPage+1)
	if err != nil {
		v.handleError("listing senders", err)
		return
	}
	var data waitingSendersPage
	var more bool
	if data.Senders, more = cut(list, sendersOnPage); more {
		data.Next = data.Senders[sendersOnPage-1].ID
	}
	v.renderPage(status, "adminsenders", data, f)
}

// approveSender is POST /admin/senders/:id/approve.
func (d *Dashboard) approveSender(v *visit, o operator) {
	d.setSender(v, o, true, "", "flash.sender.approved")
}

// withdrawSender is POST /admin/senders/:id/withdraw: it withdraws a sender's approval, or refuses a waiting one.
func (d *Dashboard) withdrawSender(v *visit, o operator) {
	f := v.form()
	reason, ok := f.reason()
	if !ok {
		v.showSenders(http.StatusUnprocessableEntity, f)
		return
	}
	d.setSender(v, o, false, reason, "flash.sender.refused")
}

type recordedSender struct {
	Name     string `json:"name"`
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitempty"`
}

func (d *Dashboard) setSender(v *visit, o operator, approved bool, reason, flash string) {
	id := v.id()
	var company int64
	err := d.change(v.ctx(), o, func(tx pgx.Tx) (audit.Entry, error) {
		users := d.rooms.Accounts.In(tx)
		before, err := users.SenderByID(v.ctx(), id)
		if err != nil {
			return audit.Entry{}, err
		}
		company = before.CompanyID
		after := before
		if approved {
			after, err = users.SetSender(v.ctx(), id, true)
		} else { // the company reads the reason
			_, err = users.RefuseSender(v.ctx(), id, reason)
			after.Approved = false
		}
		return audit.Entry{Act: "sender.set", Subject: fmt.Sprintf("sender %d", id), Company: sms.CompanyID(company),
			Before: recordedSender{before.Name, before.Approved, ""}, After: recordedSender{after.Name, after.Approved, reason}}, err
	})
	if err != nil {
		v.handleError("changing a sender", err)
		return
	}
	v.redirect(v.returnPath("/admin/companies/"+strconv.FormatInt(company, 10)), flash)
}
