package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/audit"
)

// sendersPage is the page of the sender IDs and the webhook endpoint.
type sendersPage struct {
	Senders []accounts.SenderRequest
	Full    bool // the limit of waiting sender IDs is reached
	Most    int  // the limit of waiting sender IDs
	Keep    int  // the limit of sender IDs in all
	Webhook webhookPart
}

// senders is GET /senders.
func (d *Dashboard) senders(v *visit, t tenant) {
	data, ok := v.sendersPage(t)
	if !ok {
		return
	}
	kept, err := v.takeOnce("webhook")
	if err != nil {
		v.handleError("reading what is shown once", err)
		return
	}
	v.showOnce(&data.Webhook, kept)
	v.render(http.StatusOK, "senders", data)
}

// sendersPage reads the page's data. On an error it writes the response and returns false.
func (v *visit) sendersPage(t tenant) (data sendersPage, ok bool) {
	data.Most, data.Keep = accounts.MaxWaitingSenders, accounts.MaxSenders
	var err error
	if data.Senders, err = v.d.rooms.Accounts.SenderRequestsOf(v.ctx(), t.company()); err == nil {
		data.Webhook, err = v.webhookPart(t)
	}
	if err != nil {
		v.handleError("reading sender IDs and the webhook endpoint", err)
		return data, false
	}
	waiting := 0
	for _, s := range data.Senders {
		if s.State() == accounts.SenderWaiting {
			waiting++
		}
	}
	data.Full = waiting >= accounts.MaxWaitingSenders || len(data.Senders) >= accounts.MaxSenders
	return data, true
}

// askSender is POST /senders.
func (d *Dashboard) askSender(v *visit, t tenant) {
	f := v.form()
	name := strings.TrimSpace(f.required("name"))
	if strings.Trim(name, alphanumerics) != "" || len(name) > 11 {
		f.refuse("name", "senders.name.wrong")
	}
	purpose := f.required("purpose")
	if f.ok() {
		err := pgx.BeginFunc(v.ctx(), d.rooms.Pool, func(tx pgx.Tx) error {
			r, err := d.rooms.Accounts.In(tx).AskSender(v.ctx(), t.company(), name, "BI", purpose)
			if err != nil {
				return err
			}
			return audit.Record(v.ctx(), tx, audit.Entry{Actor: audit.User(t.User.ID), Act: "sender.ask", Subject: fmt.Sprintf("sender %d", r.ID), Company: t.company(),
				After: map[string]any{"name": r.Name, "country": r.Country, "purpose": r.Purpose}})
		})
		switch {
		case err == nil:
			v.redirect("/senders", "flash.sender")
			return
		case errors.Is(err, accounts.ErrExists):
			f.refuse("name", "senders.name.taken")
		case errors.Is(err, accounts.ErrTooMany):
			f.notice("senders.full", accounts.MaxWaitingSenders, accounts.MaxSenders)
		case errors.Is(err, accounts.ErrInvalid) && d.rooms.Accounts.IsTestSender(name):
			f.refuse("name", "senders.name.test")
		case errors.Is(err, accounts.ErrInvalid):
			f.refuse("purpose", "senders.purpose.wrong", accounts.MaxPurpose)
		default:
			v.handleError("asking for a sender ID", err)
			return
		}
	}
	if data, ok := v.sendersPage(t); ok {
		v.renderForm("senders", data, f)
	}
}

const alphanumerics = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
