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
	"intumwa/internal/postgres"
	"intumwa/operations"
	"intumwa/texts"
)

// registrationTexts maps the states of a sender at a carrier to the keys of their texts and the kinds of their badges; ""
// is nothing recorded.
var registrationTexts = map[string]struct{ Key, Kind string }{
	"": {"registration.none", "wait"}, senders.RegistrationRequested: {"registration.requested", "wait"}, senders.RegistrationSent: {"registration.sent", "wait"},
	senders.RegistrationApproved: {"registration.approved", "good"}, senders.RegistrationRefused: {"registration.refused", "bad"},
	senders.RegistrationNotNeeded: {"registration.unneeded", "good"},
}

// atCarrier is a sender at a carrier.
type atCarrier struct {
	senders.Registration // without an id: nothing is recorded

	Key, Kind string // of the state's badge
	Works     bool
	Gone      bool // the carrier is not in the configuration
}

// atCarriers returns a sender at all carriers of the configuration, and at others about which something is recorded.
func (v *visit) atCarriers(recorded map[string]senders.Registration) (list []atCarrier) {
	sender := accounts.Sender{Works: map[string]bool{}}
	for carrier, r := range recorded {
		sender.Works[carrier] = r.Works
	}
	routes := v.d.rooms.Intake.Routes()
	add := func(carrier string, gone bool) {
		row := atCarrier{Registration: recorded[carrier], Works: sender.WorksAt(carrier, routes.Registration(carrier)), Gone: gone}
		row.Carrier = carrier
		text := registrationTexts[row.State]
		if row.Key, row.Kind = text.Key, text.Kind; row.ID == 0 && row.Works {
			row.Key, row.Kind = "registration.default", "good"
		}
		list = append(list, row)
	}
	known := routes.Carriers()
	for _, carrier := range known {
		add(carrier, false)
	}
	var others []string
	for carrier := range recorded {
		if !slices.Contains(known, carrier) {
			others = append(others, carrier)
		}
	}
	slices.Sort(others)
	for _, carrier := range others {
		add(carrier, true)
	}
	return list
}

type adminSenderPage struct {
	senders.SenderRequest

	Carriers []atCarrier
	States   []option
}

// adminSender is GET /admin/senders/:id: a sender at each carrier.
func (d *Dashboard) adminSender(v *visit) error { return v.showSender(v.id()) }

func (v *visit) showSender(id int64) (err error) {
	var p adminSenderPage
	if p.SenderRequest, err = v.d.rooms.Senders.SenderByID(v.ctx(), id); err != nil {
		return err
	}
	list, err := v.d.rooms.Senders.Registrations(v.ctx(), id, false, 0, 1000)
	recorded := map[string]senders.Registration{}
	for _, r := range list {
		recorded[r.Carrier] = r
	}
	p.Carriers = v.atCarriers(recorded)
	for _, state := range senders.RegistrationStates {
		p.States = append(p.States, option{state, v.lang.T(registrationTexts[state].Key)})
	}
	return v.page(err, "adminsender", p)
}

// setRegistration is POST /admin/senders/:id/carriers.
func (d *Dashboard) setRegistration(v *visit) error {
	f, id := v.form(), v.id()
	carrier, change := f.Value("carrier"), senders.RegistrationChange{State: f.Value("state"), Reason: f.Value("reason")}
	if !slices.Contains(d.rooms.Intake.Routes().Carriers(), carrier) {
		return errNotFound
	}
	if day := f.Value("sent_on"); day != "" {
		var err error
		if change.SentOn, err = time.Parse(time.DateOnly, day); err != nil {
			f.notice("registration.wrong")
			return v.showSender(id)
		}
	}
	_, err := v.by().SetRegistration(v.ctx(), id, carrier, change, new(f.Value("version")))
	switch {
	case errors.Is(err, operations.ErrChanged):
		return v.redirect(senderPath(id), "flash.registration.changed")
	case errors.Is(err, accounts.ErrInvalid):
		f.notice("registration.wrong")
		return v.showSender(id)
	}
	return v.done(err, senderPath(id), "flash.registration")
}

func senderPath(id int64) string { return fmt.Sprintf("/admin/senders/%d", id) }

// uploadRegistrationDocument is POST /admin/registrations/:id/document.
func (d *Dashboard) uploadRegistrationDocument(v *visit) error {
	err := v.receiveDocument(-v.session.User.ID, nil, func(name string, file []byte) error { // negative: no company has that id
		return v.by().SetRegistrationDocument(v.ctx(), v.id(), name, file)
	})
	if err != nil {
		return err
	}
	r, err := d.rooms.Senders.RegistrationByID(v.ctx(), v.id())
	if err == nil && !v.form().ok() {
		v.form().Notice = v.form().Wrong("file")
		return v.showSender(r.SenderID)
	}
	return v.done(err, senderPath(r.SenderID), "flash.document")
}

// registrationDocument is GET /admin/registrations/:id/document.
func (d *Dashboard) registrationDocument(v *visit) error {
	id := v.id()
	return v.sendDocument(v.session.User.ID, id, func() (accounts.Document, error) {
		r, err := d.rooms.Senders.RegistrationByID(v.ctx(), id)
		return r.Document, err
	}, func(of accounts.Document, from, size int) ([]byte, error) {
		return d.rooms.Senders.RegistrationDocumentPart(v.ctx(), id, of, from, size)
	})
}

// lateRegistrations is GET /admin/senders/late: the senders that have waited for a carrier for more than a week.
func (d *Dashboard) lateRegistrations(v *visit) error {
	rows, err := list(v, "/admin/senders/late", rowsOnPage, func(after int64, limit int) ([]senders.Registration, int64, error) {
		found, err := d.rooms.Senders.LateRegistrations(v.ctx(), after, limit+1)
		return byID(limit, func(r *senders.Registration) int64 { return r.ID }, found, err)
	})
	return v.page(err, "adminlate", rows)
}

type letterPage struct {
	senders.SenderRequest

	Operator Operator        // who writes it
	In       *texts.Language // of the letter
	Carrier  string
	Facts    companies.Facts
	Document string // about this registration
	At       time.Time
}

// registrationLetter is GET /admin/senders/:id/letter: the request to a carrier, to be printed, in French unless the
// parameter in says otherwise.
func (d *Dashboard) registrationLetter(v *visit) (err error) {
	p := letterPage{Operator: d.opts.Operator, Carrier: v.c.Query("carrier"), At: postgres.Now()}
	p.Operator.Name = cmp.Or(p.Operator.Name, "Intumwa")
	if !slices.Contains(d.rooms.Intake.Routes().Carriers(), p.Carrier) {
		return errNotFound
	}
	known := false
	if p.In, known = d.words.ByTag(v.c.DefaultQuery("in", "fr")); !known {
		return errNotFound
	}
	if p.SenderRequest, err = d.rooms.Senders.SenderByID(v.ctx(), v.id()); err != nil {
		return err
	}
	applicant, err := d.rooms.Companies.ApplicantByID(v.ctx(), p.CompanyID)
	if err != nil {
		return err
	}
	p.Facts = applicant.Facts
	list, err := d.rooms.Senders.Registrations(v.ctx(), v.id(), false, 0, 1000)
	for _, r := range list {
		if r.Carrier == p.Carrier {
			p.Document = r.Document.Name
		}
	}
	return v.page(err, "registrationletter", p)
}
