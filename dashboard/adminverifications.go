package dashboard

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

// adminVerifications is GET /admin/verifications.
func (d *Dashboard) adminVerifications(v *web.Visit) (err error) {
	p := adminVerificationsPage{Days: 7, Spans: []int{7, 30}}
	if v.C.Query("days") == "30" {
		p.Days = 30
	}
	if p.Texts, err = d.rooms.Verifications.OwnTexts(v.Ctx(), 0); err != nil {
		return err
	}
	today := postgres.Now().In(sms.Burundi)
	p.Conversions, p.More, err = d.rooms.Verifications.Conversions(v.Ctx(), verifications.ConversionFilter{First: today.AddDate(0, 0, 1-p.Days), Last: today}, conversionsOnPage)
	return v.Page(err, "adminverifications", p)
}

// approveText is POST /admin/verifications/:id/approve. It approves what the page showed.
func (d *Dashboard) approveText(v *web.Visit) error {
	return d.decideText(v, operations.Decision{Approved: true, Version: new(v.Form().Value("version"))}, "flash.verification.text.approved")
}

// refuseText is POST /admin/verifications/:id/refuse.
func (d *Dashboard) refuseText(v *web.Visit) error {
	f := v.Form()
	reason := reason(f)
	if !f.OK() {
		return d.adminVerifications(v)
	}
	return d.decideText(v, operations.Decision{Reason: reason}, "flash.verification.text.refused")
}

func (d *Dashboard) decideText(v *web.Visit, to operations.Decision, flash string) error {
	_, err := d.by(v).DecideText(v.Ctx(), v.ID(), to)
	if errors.Is(err, operations.ErrChanged) {
		return v.Redirect("/admin/verifications", "flash.verification.text.changed")
	}
	return v.Done(err, "/admin/verifications", flash)
}
