package dashboard

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/billing"
	"intumwa/internal/audit"
	"intumwa/internal/postgres"
	"intumwa/messages/lookup"
	"intumwa/operations"
	"intumwa/sms"
	"intumwa/webhooks"
)

const (
	maxCredits = 1_000_000_000 // credits that one grant may add or subtract
	recently   = 24 * time.Hour
)

func applicantID(a *companies.Applicant) int64 { return a.Company.ID }

// awaiting is GET /admin: the companies waiting for approval or verification.
func (d *Dashboard) awaiting(v *visit) error {
	rows, err := list(v, "/admin", rowsOnPage, func(before int64, limit int) ([]companies.Applicant, int64, error) {
		found, err := d.rooms.Companies.Awaiting(v.ctx(), before, limit+1)
		return byID(limit, applicantID, found, err)
	})
	return v.page(err, "admin", rows)
}

type companiesPage struct {
	listing[companies.Applicant]

	Credits map[int64]int64 // by company
}

// companies is GET /admin/companies.
func (d *Dashboard) companies(v *visit) (err error) {
	f := v.parameters("q")
	var p companiesPage
	if p.listing, err = list(v, "/admin/companies", rowsOnPage, func(before int64, limit int) ([]companies.Applicant, int64, error) {
		found, err := d.rooms.Companies.FindCompanies(v.ctx(), f.Value("q"), before, limit+1)
		return byID(limit, applicantID, found, err)
	}); err != nil {
		return err
	}
	ids := make([]int64, len(p.Rows))
	for i := range p.Rows {
		ids[i] = p.Rows[i].Company.ID
	}
	p.Credits, err = d.rooms.Ledger.Balances(v.ctx(), ids)
	return v.page(err, "admincompanies", p)
}

type adminCompanyPage struct {
	companies.Applicant

	Credits  int64
	Senders  []senders.SenderRequest
	Holders  map[int64][]string // by sender: other companies with the same name
	Endpoint *webhooks.Endpoint // nil: none; without its secrets
	Keys     []keys.Token
	People   []people.User
	Names    map[accounts.Role]string
	Counts   lookup.Counts
	Acts     []actRow
	Kinds    []option // of an adjustment
}

// adminCompany is GET /admin/companies/:id.
func (d *Dashboard) adminCompany(v *visit) error {
	v.form().formKey()
	data, err := v.companyPage()
	return v.page(err, "admincompany", data)
}

func (v *visit) companyPage() (data adminCompanyPage, err error) {
	if data.Applicant, err = v.d.rooms.Companies.ApplicantByID(v.ctx(), v.id()); err != nil {
		return data, err
	}
	id := data.Company.ID
	if data.Credits, err = v.d.rooms.Ledger.Balance(v.ctx(), id); err != nil {
		return data, err
	}
	if data.Senders, err = v.d.rooms.Senders.SenderRequestsOf(v.ctx(), sms.CompanyID(id)); err != nil {
		return data, err
	}
	ids := make([]int64, len(data.Senders))
	for i := range data.Senders {
		ids[i] = data.Senders[i].ID
	}
	if data.Holders, err = v.d.rooms.Senders.Holders(v.ctx(), ids); err != nil {
		return data, err
	}
	if data.Keys, err = v.d.rooms.Keys.TokensOfCompany(v.ctx(), id); err != nil {
		return data, err
	}
	if data.People, err = v.d.rooms.People.PeopleOf(v.ctx(), id); err != nil {
		return data, err
	}
	data.Names = v.roleNames()
	switch e, err := v.d.rooms.Webhooks.EndpointOf(v.ctx(), sms.CompanyID(id)); {
	case err == nil:
		e.URL = webhooks.RecordedURL(e.URL)
		data.Endpoint = &e
	case !errors.Is(err, webhooks.ErrNotFound):
		return data, err
	}
	if data.Counts, err = lookup.New(v.d.rooms.Pool).Count(v.ctx(), sms.CompanyID(id), postgres.Now().Add(-recently)); err != nil {
		return data, err
	}
	list, _, err := audit.List(v.ctx(), v.d.rooms.Pool, audit.Filter{Company: sms.CompanyID(id)}, 0, 10)
	if err != nil {
		return data, err
	}
	data.Acts = v.actRows(list)
	data.Kinds = v.options("no", "credits.kind.purchase", "yes", "credits.kind.correction")
	return data, nil
}

// approve is POST /admin/companies/:id/approve. It approves the facts that the page showed.
func (d *Dashboard) approve(v *visit) error {
	return v.decide(companies.CompanyChange{Approved: new(true)}, "flash.approved")
}

// verify is POST /admin/companies/:id/verify, like approve.
func (d *Dashboard) verify(v *visit) error {
	return v.decide(companies.CompanyChange{Verified: new(true)}, "flash.verified")
}

func (v *visit) decide(change companies.CompanyChange, flash string) error {
	return v.setCompany(operations.CompanyChange{CompanyChange: change, Facts: new(v.form().Value("facts"))}, flash)
}

// withdraw is POST /admin/companies/:id/withdraw: of the approval or the verification.
func (d *Dashboard) withdraw(v *visit) error {
	f := v.form()
	change, flash := companies.CompanyChange{Approved: new(false)}, "flash.disapproved"
	if f.Value("what") == "verification" {
		change, flash = companies.CompanyChange{Verified: new(false)}, "flash.unverified"
	}
	reason := f.reason()
	if !f.ok() {
		return d.adminCompany(v)
	}
	return v.setCompany(operations.CompanyChange{CompanyChange: change, Reason: reason}, flash)
}

// reason returns the reason of a withdrawal: one line of printable characters, as accounts requires.
func (f *form) reason() string {
	text := strings.Join(strings.Fields(f.name("reason")), " ")
	if !f.ok() || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		f.notice("admin.reason.wrong")
	}
	return text
}

func (v *visit) setCompany(change operations.CompanyChange, flash string) error {
	_, err := v.by().SetCompany(v.ctx(), v.id(), change)
	if errors.Is(err, operations.ErrChanged) {
		return v.redirect(companyPath(v.id()), "flash.facts.changed")
	}
	return v.done(err, v.returnPath(companyPath(v.id())), flash)
}

// returnPath returns the list that the administrator came from, or path.
func (v *visit) returnPath(path string) string {
	switch from := v.c.Query("from"); from {
	case "/admin", "/admin/senders", "/admin/smpp":
		return from
	}
	return path
}

// addCredits is POST /admin/companies/:id/credits. The form's key identifies the grant, so it is made only once.
func (d *Dashboard) addCredits(v *visit) error {
	f, id := v.form(), v.id()
	amount, err := strconv.ParseInt(strings.NewReplacer("−", "-", " ", "", "\u202f", "", "\u00a0", "").Replace(f.required("amount")), 10, 64)
	if err != nil || amount == 0 || amount > maxCredits || amount < -maxCredits {
		f.refuse("amount", "credits.amount.wrong", maxCredits)
	}
	note := f.name("note")
	var once [16]byte
	_, _ = hex.Decode(once[:], []byte(f.formKey())) // hexadecimal, as formKey checks
	if !f.ok() {
		return d.adminCompany(v)
	}
	_, err = v.by().AddCredits(v.ctx(), billing.Adjustment{Company: id, Amount: amount, Note: note, Correction: f.Value("correction") == "yes", Once: &once})
	switch {
	case errors.Is(err, billing.ErrNegative):
		f.refuse("amount", "credits.negative")
		return d.adminCompany(v)
	case err != nil && !errors.Is(err, billing.ErrGranted): // the form was repeated: the grant is already made
		return err
	}
	return v.redirect(companyPath(id), "flash.credits")
}
