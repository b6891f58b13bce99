package administration

import (
	"errors"

	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/operations"
	"intumwa/sms"
	"intumwa/verifications"
)

// conversionsOnPage is how many blocks of numbers the page shows.
const conversionsOnPage = 100

// adminVerificationsPage has the own texts that wait for a decision, and how many people answered.
type adminVerificationsPage struct {
	Texts       []verifications.OwnText
	Conversions []verifications.Conversion
	More        bool
	Days        int
	Spans       []int
}

// AdminVerifications is GET /admin/verifications.
func (ps *Pages) AdminVerifications(v *web.Visit) (err error) {
	p := adminVerificationsPage{Days: 7, Spans: []int{7, 30}}
	if v.C.Query("days") == "30" {
		p.Days = 30
	}
	if p.Texts, err = ps.Deps.Verifications.OwnTexts(v.Ctx(), 0); err != nil {
		return err
	}
	today := postgres.Now().In(sms.Burundi)
	p.Conversions, p.More, err = ps.Deps.Verifications.Conversions(
		v.Ctx(), verifications.ConversionFilter{First: today.AddDate(0, 0, 1-p.Days), Last: today}, conversionsOnPage)
	return v.Page(err, "adminverifications", p)
}

// ApproveText is POST /admin/verifications/:id/approve. It approves what the page showed.
func (ps *Pages) ApproveText(v *web.Visit) error {
	return ps.decideText(v, operations.Decision{Approved: true, Version: new(v.Form().Value("version"))},
		"flash.verification.text.approved")
}

// RefuseText is POST /admin/verifications/:id/refuse.
func (ps *Pages) RefuseText(v *web.Visit) error {
	f := v.Form()
	reason := reason(f)
	if !f.OK() {
		return ps.AdminVerifications(v)
	}
	return ps.decideText(v, operations.Decision{Reason: reason}, "flash.verification.text.refused")
}

func (ps *Pages) decideText(v *web.Visit, to operations.Decision, flash string) error {
	_, err := ps.By(v).DecideText(v.Ctx(), v.ID(), to)
	if errors.Is(err, operations.ErrChanged) {
		return v.Redirect("/admin/verifications", "flash.verification.text.changed")
	}
	return v.Done(err, "/admin/verifications", flash)
}
