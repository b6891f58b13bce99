package dashboard

import (
	"errors"

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
func (d *Dashboard) adminVerifications(v *visit) (err error) {
	p := adminVerificationsPage{Days: 7, Spans: []int{7, 30}}
	if v.c.Query("days") == "30" {
		p.Days = 30
	}
	if p.Texts, err = d.rooms.Verifications.OwnTexts(v.ctx(), 0); err != nil {
		return err
	}
	today := postgres.Now().In(sms.Burundi)
	p.Conversions, p.More, err = d.rooms.Verifications.Conversions(v.ctx(), verifications.ConversionFilter{First: today.AddDate(0, 0, 1-p.Days), Last: today}, conversionsOnPage)
	return v.page(err, "adminverifications", p)
}

// approveText is POST /admin/verifications/:id/approve. It approves what the page showed.
func (d *Dashboard) approveText(v *visit) error {
	return v.decideText(operations.Decision{Approved: true, Version: new(v.form().Value("version"))}, "flash.verification.text.approved")
}

// refuseText is POST /admin/verifications/:id/refuse.
func (d *Dashboard) refuseText(v *visit) error {
	f := v.form()
	reason := f.reason()
	if !f.ok() {
		return d.adminVerifications(v)
	}
	return v.decideText(operations.Decision{Reason: reason}, "flash.verification.text.refused")
}

func (v *visit) decideText(to operations.Decision, flash string) error {
	_, err := v.by().DecideText(v.ctx(), v.id(), to)
	if errors.Is(err, operations.ErrChanged) {
		return v.redirect("/admin/verifications", "flash.verification.text.changed")
	}
	return v.done(err, "/admin/verifications", flash)
}
