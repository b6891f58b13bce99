package dashboard

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/internal/audit"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

const (
	companiesOnPage = 50
	maxCredits      = 1_000_000_000 // credits that one grant may add or subtract
	recently        = 24 * time.Hour
)

type awaitingPage struct {
	Companies []accounts.Applicant
	Next      int64 // the last one's id, when there are more
}

// awaiting is GET /admin: the companies that wait for approval or verification.
func (d *Dashboard) awaiting(v *visit, _ operator) {
	list, err := d.rooms.Accounts.Awaiting(v.ctx(), v.after("after"), companiesOnPage+1)
	if err != nil {
		v.handleError("listing companies", err)
		return
	}
	var data awaitingPage
	var more bool
	if data.Companies, more = cut(list, companiesOnPage); more {
		data.Next = data.Companies[companiesOnPage-1].Company.ID
	}
	v.render(http.StatusOK, "admin", data)
}

type companiesPage struct {
	Query     string
	Companies []companyRow
	Next      string
}

type companyRow struct {
	accounts.Applicant

	Credits int64
}

func (v *visit) query() string {
	text := strings.TrimSpace(v.c.Query("q"))
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}

// companies is GET /admin/companies.
func (d *Dashboard) companies(v *visit, _ operator) {
	data := companiesPage{Query: v.query()}
	list, err := d.rooms.Accounts.FindCompanies(v.ctx(), data.Query, v.after("after"), companiesOnPage+1)
	if err != nil {
		v.handleError("listing companies", err)
		return
	}
	list, more := cut(list, companiesOnPage)
	if more {
		data.Next = address("/admin/companies", "q", data.Query, "after", strconv.FormatInt(list[companiesOnPage-1].Company.ID, 10))
	}
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].Company.ID
	}
	credits, err := d.rooms.Ledger.Balances(v.ctx(), ids)
	if err != nil {
		v.handleError("listing companies", err)
		return
	}
	for _, c := range list {
		data.Companies = append(data.Companies, companyRow{c, credits[c.Company.ID]})
	}
	v.render(http.StatusOK, "admincompanies", data)
}

type adminCompanyPage struct {
	accounts.Applicant

	Credits  int64
	Senders  []accounts.Sender
	Endpoint *webhooks.Endpoint // nil: none; without its secrets
	Keys     []accounts.Token
	Counts   messages.Counts
	Acts     []actRow
	Once     string // of the next grant
}

// adminCompany is GET /admin/companies/:id.
func (d *Dashboard) adminCompany(v *visit, _ operator) { v.showCompany(http.StatusOK, v.newForm()) }

func (v *visit) showCompany(status int, f *form) {
	data, err := v.companyPage()
	if err != nil {
		v.handleError("reading a company", err)
		return
	}
	data.Once = f.Value("once")
	if data.Once == "" {
		var key [16]byte
		_, _ = rand.Read(key[:]) // never fails
		data.Once = hex.EncodeToString(key[:])
	}
	v.renderPage(status, "admincompany", data, f)
}

func (v *visit) companyPage() (data adminCompanyPage, err error) {
	a := v.d.rooms.Accounts
	if data.Applicant, err = a.ApplicantByID(v.ctx(), v.id()); err != nil {
		return data, err
	}
	id := data.Company.ID
	if data.Credits, err = v.d.rooms.Ledger.Balance(v.ctx(), id); err != nil {
		return data, err
	}
	if data.Senders, err = a.SendersOf(v.ctx(), id); err != nil {
		return data, err
	}
	if data.Keys, err = a.TokensOf(v.ctx(), data.Company.OwnerID); err != nil {
		return data, err
	}
	switch e, err := v.d.rooms.Webhooks.EndpointOf(v.ctx(), sms.CompanyID(id)); {
	case err == nil:
		e.URL = webhooks.RecordedURL(e.URL)
		data.Endpoint = &e
	case !errors.Is(err, webhooks.ErrNotFound):
		return data, err
	}
	if data.Counts, err = messages.New(v.d.rooms.Pool).Count(v.ctx(), sms.CompanyID(id), postgres.Now().Add(-recently)); err != nil {
		return data, err
	}
	list, _, err := audit.List(v.ctx(), v.d.rooms.Pool, audit.Filter{Company: sms.CompanyID(id)}, 0, 10)
	if err != nil {
		return data, err
	}
	data.Acts, err = v.actRows(list)
	return data, err
}

// recordedFlags is a company's flags as recorded in an act.
type recordedFlags struct {
	Approved bool   `json:"approved"`
	Verified bool   `json:"verified"`
	Reason   string `json:"reason,omitempty"`
}

// approve is POST /admin/companies/:id/approve.
func (d *Dashboard) approve(v *visit, o operator) {
	yes := true
	d.setCompany(v, o, accounts.CompanyChange{Approved: &yes}, "", "flash.approved")
}

// verify is POST /admin/companies/:id/verify.
func (d *Dashboard) verify(v *visit, o operator) {
	yes := true
	d.setCompany(v, o, accounts.CompanyChange{Verified: &yes}, "", "flash.verified")
}

// withdraw is POST /admin/companies/:id/withdraw: it withdraws the approval or the verification.
func (d *Dashboard) withdraw(v *visit, o operator) {
	f := v.form()
	no := false
	change, flash := accounts.CompanyChange{Approved: &no}, "flash.disapproved"
	if f.Value("what") == "verification" {
		change, flash = accounts.CompanyChange{Verified: &no}, "flash.unverified"
	}
	reason, ok := f.reason()
	if !ok {
		v.showCompany(http.StatusUnprocessableEntity, f)
		return
	}
	d.setCompany(v, o, change, reason, flash)
}

// reason returns the field with the reason of a withdrawal: one line of printable characters, as accounts requires.
func (f *form) reason() (text string, ok bool) {
	text = strings.Join(strings.Fields(f.name("reason")), " ")
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		f.refuse("reason", "error.name")
	}
	if !f.ok() {
		f.notice("admin.reason.wrong")
	}
	return text, f.ok()
}

func (d *Dashboard) setCompany(v *visit, o operator, change accounts.CompanyChange, reason, flash string) {
	id := v.id()
	err := d.change(v.ctx(), o, func(tx pgx.Tx) (audit.Entry, error) {
		users := d.rooms.Accounts.In(tx)
		before, err := users.CompanyByID(v.ctx(), id)
		if err != nil {
			return audit.Entry{}, err
		}
		after, err := users.SetCompany(v.ctx(), id, change)
		return audit.Entry{Act: "company.set", Subject: fmt.Sprintf("company %d", id), Company: sms.CompanyID(id),
			Before: recordedFlags{before.Approved, before.Verified, ""}, After: recordedFlags{after.Approved, after.Verified, reason}}, err
	})
	if err != nil {
		v.handleError("changing a company", err)
		return
	}
	v.redirect(v.returnPath("/admin/companies/"+strconv.FormatInt(id, 10)), flash)
}

// returnPath returns the list of waiting companies or senders if the administrator came from there; otherwise path.
func (v *visit) returnPath(path string) string {
	switch from := v.c.Query("from"); from {
	case "/admin", "/admin/senders":
		return from
	}
	return path
}

// addCredits is POST /admin/companies/:id/credits.
func (d *Dashboard) addCredits(v *visit, o operator) {
	f := v.form()
	amount, err := strconv.ParseInt(strings.NewReplacer("−", "-", " ", "", "\u202f", "", "\u00a0", "").Replace(f.required("amount")), 10, 64)
	if err != nil || amount == 0 || amount > maxCredits || amount < -maxCredits {
		f.refuse("amount", "credits.amount.wrong", maxCredits)
	}
	note := f.name("note")
	var once [16]byte
	if raw, err := hex.DecodeString(f.Value("once")); err != nil || copy(once[:], raw) != len(once) || len(raw) != len(once) {
		f.values.Del("once")
		f.notice("credits.stale")
	}
	if !f.ok() {
		v.showCompany(http.StatusUnprocessableEntity, f)
		return
	}
	id := v.id()
	err = d.changeBusy(v.ctx(), o, func(tx pgx.Tx) (audit.Entry, error) {
		credits, err := billing.GrantOnce(v.ctx(), tx, once, id, amount, note)
		return audit.Entry{Act: "credits.add", Subject: fmt.Sprintf("company %d", id), Company: sms.CompanyID(id),
			Before: map[string]any{"credits": credits - amount},
			After:  map[string]any{"credits": credits, "amount": amount, "note": note}}, err
	})
	switch {
	case errors.Is(err, billing.ErrNoBalance):
		v.renderError(http.StatusNotFound)
	case errors.Is(err, billing.ErrNegative):
		f.refuse("amount", "credits.negative")
		v.showCompany(http.StatusUnprocessableEntity, f)
	case err != nil && !errors.Is(err, billing.ErrGranted): // a repeated form: the grant was made before
		v.handleError("adding credits", err)
	default:
		v.redirect("/admin/companies/"+strconv.FormatInt(id, 10), "flash.credits")
	}
}

// revokeAnyKey is POST /admin/keys/:id/revoke.
func (d *Dashboard) revokeAnyKey(v *visit, o operator) {
	id := v.id()
	home := "/admin/companies"
	err := d.change(v.ctx(), o, func(tx pgx.Tx) (audit.Entry, error) {
		users := d.rooms.Accounts.In(tx)
		before, err := users.TokenByID(v.ctx(), id)
		if err != nil {
			return audit.Entry{}, err
		}
		entry := audit.Entry{Act: "token.revoke", Subject: fmt.Sprintf("token %d", id),
			Before: map[string]any{"user_id": before.UserID, "name": before.Name, "revoked": before.RevokedAt != nil},
			After:  map[string]any{"user_id": before.UserID, "name": before.Name, "revoked": true}}
		switch company, err := users.CompanyOf(v.ctx(), before.UserID); {
		case err == nil:
			entry.Company = sms.CompanyID(company.ID)
			home = "/admin/companies/" + strconv.FormatInt(company.ID, 10)
		case !errors.Is(err, accounts.ErrNotFound):
			return audit.Entry{}, err
		}
		return entry, users.RevokeToken(v.ctx(), id)
	})
	if err != nil {
		v.handleError("revoking a key", err)
		return
	}
	v.redirect(home, "flash.revoked")
}
