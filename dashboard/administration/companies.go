package administration

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
	"intumwa/dashboard/web"
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

// Awaiting is GET /admin: the companies waiting for approval or review.
func (ps *Pages) Awaiting(v *web.Visit) error {
	rows, err := web.List(v, "/admin", web.RowsOnPage, func(before int64, limit int) ([]companies.Applicant, int64,
		error) {
		found, err := ps.Deps.Companies.Awaiting(v.Ctx(), before, limit+1)
		return web.ByID(limit, applicantID, found, err)
	})
	return v.Page(err, "admin", rows)
}

type companiesPage struct {
	web.Listing[companies.Applicant]

	Credits map[int64]int64 // by company
}

// Companies is GET /admin/companies.
func (ps *Pages) Companies(v *web.Visit) (err error) {
	f := v.Parameters("q")
	var p companiesPage
	if p.Listing, err = web.List(v, "/admin/companies", web.RowsOnPage,
		func(before int64, limit int) ([]companies.Applicant, int64, error) {
			found, err := ps.Deps.Companies.FindCompanies(v.Ctx(), f.Value("q"), before, limit+1)
			return web.ByID(limit, applicantID, found, err)
		}); err != nil {
		return err
	}
	ids := make([]int64, len(p.Rows))
	for i := range p.Rows {
		ids[i] = p.Rows[i].Company.ID
	}
	p.Credits, err = ps.Deps.Ledger.Balances(v.Ctx(), ids)
	return v.Page(err, "admincompanies", p)
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
	Kinds    []web.Option // of an adjustment
	Office   bool         // the OBR can be asked about the NIF
	NIF      *nifAnswer   // nil: it was not asked
}

// AdminCompany is GET /admin/companies/:id.
func (ps *Pages) AdminCompany(v *web.Visit) error {
	v.Form().FormKey()
	data, err := ps.companyPage(v)
	return v.Page(err, "admincompany", data)
}

func (ps *Pages) companyPage(v *web.Visit) (data adminCompanyPage, err error) {
	if data.Applicant, err = ps.Deps.Companies.ApplicantByID(v.Ctx(), v.ID()); err != nil {
		return data, err
	}
	id := data.Company.ID
	if data.Credits, err = ps.Deps.Ledger.Balance(v.Ctx(), id); err != nil {
		return data, err
	}
	if data.Senders, err = ps.Deps.Senders.SenderRequestsOf(v.Ctx(), sms.CompanyID(id)); err != nil {
		return data, err
	}
	ids := make([]int64, len(data.Senders))
	for i := range data.Senders {
		ids[i] = data.Senders[i].ID
	}
	if data.Holders, err = ps.Deps.Senders.Holders(v.Ctx(), ids); err != nil {
		return data, err
	}
	if data.Keys, err = ps.Deps.Keys.TokensOfCompany(v.Ctx(), id); err != nil {
		return data, err
	}
	if data.People, err = ps.Deps.People.PeopleOf(v.Ctx(), id); err != nil {
		return data, err
	}
	data.Names = web.RoleNames(v.Lang)
	switch e, err := ps.Deps.Webhooks.EndpointOf(v.Ctx(), sms.CompanyID(id)); {
	case err == nil:
		e.URL = webhooks.RecordedURL(e.URL)
		data.Endpoint = &e
	case !errors.Is(err, webhooks.ErrNotFound):
		return data, err
	}
	if data.Counts, err = lookup.New(ps.Deps.Pool).Count(v.Ctx(), sms.CompanyID(id),
		postgres.Now().Add(-recently)); err != nil {
		return data, err
	}
	list, _, err := audit.List(v.Ctx(), ps.Deps.Pool, audit.Filter{Company: sms.CompanyID(id)}, 0, 10)
	if err != nil {
		return data, err
	}
	data.Acts = ps.actRows(v, list)
	if data.Office = ps.TaxOffice != nil && data.Facts.NIF != ""; data.Office && v.C.Query("nif") == "ask" {
		data.NIF = ps.askOBR(v, data.Facts.NIF)
	}
	data.Kinds = v.Options("no", "credits.kind.purchase", "yes", "credits.kind.correction")
	return data, nil
}

// Approve is POST /admin/companies/:id/approve. It approves the facts that the page showed.
func (ps *Pages) Approve(v *web.Visit) error {
	return ps.decide(v, companies.CompanyChange{Approved: new(true)}, "flash.approved")
}

// Verify is POST /admin/companies/:id/verify, like approve.
func (ps *Pages) Verify(v *web.Visit) error {
	return ps.decide(v, companies.CompanyChange{Verified: new(true)}, "flash.verified")
}

func (ps *Pages) decide(v *web.Visit, change companies.CompanyChange, flash string) error {
	return ps.setCompany(v, operations.CompanyChange{CompanyChange: change, Facts: new(v.Form().Value("facts"))}, flash)
}

// Withdraw is POST /admin/companies/:id/withdraw: of the approval or the review.
func (ps *Pages) Withdraw(v *web.Visit) error {
	f := v.Form()
	change, flash := companies.CompanyChange{Approved: new(false)}, "flash.disapproved"
	if f.Value("what") == "verification" {
		change, flash = companies.CompanyChange{Verified: new(false)}, "flash.unverified"
	}
	reason := reason(f)
	if !f.OK() {
		return ps.AdminCompany(v)
	}
	return ps.setCompany(v, operations.CompanyChange{CompanyChange: change, Reason: reason}, flash)
}

// reason returns the reason of a withdrawal: one line of printable characters, as accounts requires.
func reason(f *web.Form) string {
	text := strings.Join(strings.Fields(f.Name("reason")), " ")
	if !f.OK() || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		f.Fail("admin.reason.wrong")
	}
	return text
}

func (ps *Pages) setCompany(v *web.Visit, change operations.CompanyChange, flash string) error {
	_, err := ps.By(v).SetCompany(v.Ctx(), v.ID(), change)
	if errors.Is(err, operations.ErrChanged) {
		return v.Redirect(web.CompanyPath(v.ID()), "flash.facts.changed")
	}
	return v.Done(err, returnPath(v, web.CompanyPath(v.ID())), flash)
}

// returnPath returns the list that the administrator came from, or path.
func returnPath(v *web.Visit, path string) string {
	switch from := v.C.Query("from"); from {
	case "/admin", "/admin/senders", "/admin/smpp":
		return from
	}
	return path
}

// AddCredits is POST /admin/companies/:id/credits. The form's key identifies the grant, so it is made only once.
func (ps *Pages) AddCredits(v *web.Visit) error {
	f, id := v.Form(), v.ID()
	amount, err := strconv.ParseInt(strings.NewReplacer("−", "-", " ", "", "\u202f", "", "\u00a0", "").Replace(
		f.Required("amount")), 10, 64)
	if err != nil || amount == 0 || amount > maxCredits || amount < -maxCredits {
		f.Refuse("amount", "credits.amount.wrong", maxCredits)
	}
	note := f.Name("note")
	var once [16]byte
	_, _ = hex.Decode(once[:], []byte(f.FormKey())) // hexadecimal, as FormKey checks
	if !f.OK() {
		return ps.AdminCompany(v)
	}
	_, err = ps.By(v).AddCredits(v.Ctx(), billing.Adjustment{Company: id, Amount: amount, Note: note,
		Correction: f.Value("correction") == "yes", Once: &once})
	switch {
	case errors.Is(err, billing.ErrNegative):
		f.Refuse("amount", "credits.negative")
		return ps.AdminCompany(v)
	case err != nil && !errors.Is(err, billing.ErrGranted): // the form was repeated: the grant is already made
		return err
	}
	return v.Redirect(web.CompanyPath(id), "flash.credits")
}

// RevokeAnyKey is POST /admin/keys/:id/revoke.
func (ps *Pages) RevokeAnyKey(v *web.Visit) error {
	company, err := ps.By(v).RevokeToken(v.Ctx(), v.ID(), nil)
	home := "/admin/companies"
	if company != 0 {
		home = web.CompanyPath(company)
	}
	return v.Done(err, returnPath(v, home), "flash.revoked")
}

// DeleteDocument is POST /admin/companies/:id/document/delete: a checked document is no longer needed.
func (ps *Pages) DeleteDocument(v *web.Visit) error {
	err := ps.By(v).DeleteDocument(v.Ctx(), sms.CompanyID(v.ID()))
	return v.Done(err, web.CompanyPath(v.ID()), "flash.document.deleted")
}
