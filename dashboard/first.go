package dashboard

import (
	"cmp"

	"intumwa/dashboard/testmode"
	"intumwa/dashboard/web"
	"intumwa/intake"
)

// firstPage is the page for the first message: free of charge, from the test sender to the verified test number.
type firstPage struct {
	Test testmode.Mode
	Text string
	Curl string
}

// first is GET /first.
func (d *Dashboard) first(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	f.FormKey()
	m, err := d.test.Mode(v, t.Company)
	if err != nil {
		return err
	}
	text := cmp.Or(f.Value("message"), v.Lang.T("first.example"))
	return v.Render("first", firstPage{Test: m, Text: text, Curl: d.test.Curl("", testmode.Body(m.Number, m.Sender, text))})
}

// sendFirst is POST /first.
func (d *Dashboard) sendFirst(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	text := text(f, "message")
	m, err := d.test.Mode(v, t.Company)
	if err != nil {
		return err
	}
	if !m.Verified {
		f.Fail("refusal.testnumber")
	}
	if f.OK() {
		_, err = d.send(v, t, intake.Single{Number: m.Number, Sender: m.Sender, Message: text})
	}
	switch {
	case err != nil:
		return err
	case !f.OK():
		return d.first(v, t)
	}
	return v.Redirect("/first/"+f.FormKey(), "")
}
