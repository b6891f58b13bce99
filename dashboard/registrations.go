package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/senders"
	"intumwa/dashboard/registered"
	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/operations"
	"intumwa/texts"
)

type adminSenderPage struct {
	senders.SenderRequest

	Carriers []registered.AtCarrier
	States   []web.Option
}

// adminSender is GET /admin/senders/:id: a sender at each carrier.
func (d *Dashboard) adminSender(v *web.Visit) error { return d.showSender(v, v.ID()) }

func (d *Dashboard) showSender(v *web.Visit, id int64) (err error) {
	var p adminSenderPage
	if p.SenderRequest, err = d.rooms.Senders.SenderByID(v.Ctx(), id); err != nil {
		return err
	}
	list, err := d.rooms.Senders.Registrations(v.Ctx(), id, false, 0, 1000)
	recorded := map[string]senders.Registration{}
	for _, r := range list {
		recorded[r.Carrier] = r
	}
	p.Carriers = registered.AtCarriers(d.rooms.Intake.Routes(), recorded)
	for _, state := range senders.RegistrationStates {
		p.States = append(p.States, web.Option{Value: state, Text: v.Lang.T(registered.Texts[state].Key)})
	}
	return v.Page(err, "adminsender", p)
}

// setRegistration is POST /admin/senders/:id/carriers.
func (d *Dashboard) setRegistration(v *web.Visit) error {
	f, id := v.Form(), v.ID()
	carrier, change := f.Value("carrier"), senders.RegistrationChange{State: f.Value("state"), Reason: f.Value("reason")}
	if !slices.Contains(d.rooms.Intake.Routes().Carriers(), carrier) {
		return web.ErrNotFound
	}
	if day := f.Value("sent_on"); day != "" {
		var err error
		if change.SentOn, err = time.Parse(time.DateOnly, day); err != nil {
			f.Fail("registration.wrong")
			return d.showSender(v, id)
		}
	}
	_, err := d.by(v).SetRegistration(v.Ctx(), id, carrier, change, new(f.Value("version")))
	switch {
	case errors.Is(err, operations.ErrChanged):
		return v.Redirect(senderPath(id), "flash.registration.changed")
	case errors.Is(err, accounts.ErrInvalid):
		f.Fail("registration.wrong")
		return d.showSender(v, id)
	}
	return v.Done(err, senderPath(id), "flash.registration")
}

func senderPath(id int64) string { return fmt.Sprintf("/admin/senders/%d", id) }

// uploadRegistrationDocument is POST /admin/registrations/:id/document.
func (d *Dashboard) uploadRegistrationDocument(v *web.Visit) error {
	err := v.ReceiveDocument(-v.Session.User.ID, nil, func(name string, file []byte) error { // negative: no company has that id
		return d.by(v).SetRegistrationDocument(v.Ctx(), v.ID(), name, file)
	})
	if err != nil {
		return err
	}
	r, err := d.rooms.Senders.RegistrationByID(v.Ctx(), v.ID())
	if err == nil && !v.Form().OK() {
		v.Form().Notice = v.Form().Wrong("file")
		return d.showSender(v, r.SenderID)
	}
	return v.Done(err, senderPath(r.SenderID), "flash.document")
}

// registrationDocument is GET /admin/registrations/:id/document.
func (d *Dashboard) registrationDocument(v *web.Visit) error {
	id := v.ID()
	return v.SendDocument(v.Session.User.ID, id, func() (accounts.Document, error) {
		r, err := d.rooms.Senders.RegistrationByID(v.Ctx(), id)
		return r.Document, err
	}, func(of accounts.Document, from, size int) ([]byte, error) {
		return d.rooms.Senders.RegistrationDocumentPart(v.Ctx(), id, of, from, size)
	})
}

// lateRegistrations is GET /admin/senders/late: the senders that have waited for a carrier for more than a week.
func (d *Dashboard) lateRegistrations(v *web.Visit) error {
	rows, err := web.List(v, "/admin/senders/late", web.RowsOnPage, func(after int64, limit int) ([]senders.Registration, int64, error) {
		found, err := d.rooms.Senders.LateRegistrations(v.Ctx(), after, limit+1)
		return web.ByID(limit, func(r *senders.Registration) int64 { return r.ID }, found, err)
	})
	return v.Page(err, "adminlate", rows)
}

type letterPage struct {
	senders.SenderRequest

	Operator web.Operator    // who writes it
	In       *texts.Language // of the letter
	Carrier  string
	Facts    companies.Facts
	Document string // about this registration
	At       time.Time
}

// registrationLetter is GET /admin/senders/:id/letter: the request to a carrier, to be printed, in French unless the
// parameter in says otherwise.
func (d *Dashboard) registrationLetter(v *web.Visit) (err error) {
	p := letterPage{Operator: d.opts.Operator, Carrier: v.C.Query("carrier"), At: postgres.Now()}
	p.Operator.Name = cmp.Or(p.Operator.Name, "Intumwa")
	if !slices.Contains(d.rooms.Intake.Routes().Carriers(), p.Carrier) {
		return web.ErrNotFound
	}
	known := false
	if p.In, known = d.words.ByTag(v.C.DefaultQuery("in", "fr")); !known {
		return web.ErrNotFound
	}
	if p.SenderRequest, err = d.rooms.Senders.SenderByID(v.Ctx(), v.ID()); err != nil {
		return err
	}
	applicant, err := d.rooms.Companies.ApplicantByID(v.Ctx(), p.CompanyID)
	if err != nil {
		return err
	}
	p.Facts = applicant.Facts
	list, err := d.rooms.Senders.Registrations(v.Ctx(), v.ID(), false, 0, 1000)
	for _, r := range list {
		if r.Carrier == p.Carrier {
			p.Document = r.Document.Name
		}
	}
	return v.Page(err, "registrationletter", p)
}
