package administration

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

// AdminSender is GET /admin/senders/:id: a sender at each carrier.
func (ps *Pages) AdminSender(v *web.Visit) error { return ps.showSender(v, v.ID()) }

func (ps *Pages) showSender(v *web.Visit, id int64) (err error) {
	var p adminSenderPage
	if p.SenderRequest, err = ps.Deps.Senders.SenderByID(v.Ctx(), id); err != nil {
		return err
	}
	list, err := ps.Deps.Senders.Registrations(v.Ctx(), id, false, 0, 1000)
	recorded := map[string]senders.Registration{}
	for _, r := range list {
		recorded[r.Carrier] = r
	}
	p.Carriers = registered.AtCarriers(ps.Routes(), recorded)
	for _, state := range senders.RegistrationStates {
		p.States = append(p.States, web.Option{Value: state, Text: v.Lang.T(registered.Texts[state].Key)})
	}
	return v.Page(err, "adminsender", p)
}

// SetRegistration is POST /admin/senders/:id/carriers.
func (ps *Pages) SetRegistration(v *web.Visit) error {
	f, id := v.Form(), v.ID()
	carrier, change := f.Value("carrier"), senders.RegistrationChange{State: f.Value("state"), Reason: f.Value("reason")}
	if !slices.Contains(ps.Routes().Carriers(), carrier) {
		return web.ErrNotFound
	}
	if day := f.Value("sent_on"); day != "" {
		var err error
		if change.SentOn, err = time.Parse(time.DateOnly, day); err != nil {
			f.Fail("registration.wrong")
			return ps.showSender(v, id)
		}
	}
	_, err := ps.By(v).SetRegistration(v.Ctx(), id, carrier, change, new(f.Value("version")))
	switch {
	case errors.Is(err, operations.ErrChanged):
		return v.Redirect(senderPath(id), "flash.registration.changed")
	case errors.Is(err, accounts.ErrInvalid):
		f.Fail("registration.wrong")
		return ps.showSender(v, id)
	}
	return v.Done(err, senderPath(id), "flash.registration")
}

func senderPath(id int64) string { return fmt.Sprintf("/admin/senders/%d", id) }

// UploadRegistrationDocument is POST /admin/registrations/:id/document.
func (ps *Pages) UploadRegistrationDocument(v *web.Visit) error {
	err := v.ReceiveDocument(-v.Session.User.ID, nil, func(name string, file []byte) error {
		// negative: no company has that id
		return ps.By(v).SetRegistrationDocument(v.Ctx(), v.ID(), name, file)
	})
	if err != nil {
		return err
	}
	r, err := ps.Deps.Senders.RegistrationByID(v.Ctx(), v.ID())
	if err == nil && !v.Form().OK() {
		v.Form().Notice = v.Form().Wrong("file")
		return ps.showSender(v, r.SenderID)
	}
	return v.Done(err, senderPath(r.SenderID), "flash.document")
}

// RegistrationDocument is GET /admin/registrations/:id/document.
func (ps *Pages) RegistrationDocument(v *web.Visit) error {
	id := v.ID()
	return v.SendDocument(v.Session.User.ID, id, func() (accounts.Document, error) {
		r, err := ps.Deps.Senders.RegistrationByID(v.Ctx(), id)
		return r.Document, err
	}, func(of accounts.Document, from, size int) ([]byte, error) {
		return ps.Deps.Senders.RegistrationDocumentPart(v.Ctx(), id, of, from, size)
	})
}

// LateRegistrations is GET /admin/senders/late: the senders that have waited for a carrier for more than a week.
func (ps *Pages) LateRegistrations(v *web.Visit) error {
	rows, err := web.List(v, "/admin/senders/late", web.RowsOnPage,
		func(after int64, limit int) ([]senders.Registration, int64, error) {
			found, err := ps.Deps.Senders.LateRegistrations(v.Ctx(), after, limit+1)
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

// RegistrationLetter is GET /admin/senders/:id/letter: the request to a carrier, to be printed, in French unless the
// parameter in says otherwise.
func (ps *Pages) RegistrationLetter(v *web.Visit) (err error) {
	p := letterPage{Operator: ps.Operator, Carrier: v.C.Query("carrier"), At: postgres.Now()}
	p.Operator.Name = cmp.Or(p.Operator.Name, "Intumwa")
	if !slices.Contains(ps.Routes().Carriers(), p.Carrier) {
		return web.ErrNotFound
	}
	known := false
	if p.In, known = ps.Words.ByTag(v.C.DefaultQuery("in", "fr")); !known {
		return web.ErrNotFound
	}
	if p.SenderRequest, err = ps.Deps.Senders.SenderByID(v.Ctx(), v.ID()); err != nil {
		return err
	}
	applicant, err := ps.Deps.Companies.ApplicantByID(v.Ctx(), p.CompanyID)
	if err != nil {
		return err
	}
	p.Facts = applicant.Facts
	list, err := ps.Deps.Senders.Registrations(v.Ctx(), v.ID(), false, 0, 1000)
	for _, r := range list {
		if r.Carrier == p.Carrier {
			p.Document = r.Document.Name
		}
	}
	return v.Page(err, "registrationletter", p)
}
