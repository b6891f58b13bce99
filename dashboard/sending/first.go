package sending

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

// First is GET /first.
func (ps *Pages) First(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	f.FormKey()
	m, err := ps.Test.Mode(v, t.Company)
	if err != nil {
		return err
	}
	text := cmp.Or(f.Value("message"), v.Lang.T("first.example"))
	return v.Render("first", firstPage{Test: m, Text: text,
		Curl: ps.Test.Curl("", testmode.Body(m.Number, m.Sender, text))})
}

// SendFirst is POST /first.
func (ps *Pages) SendFirst(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	text := text(f, "message")
	m, err := ps.Test.Mode(v, t.Company)
	if err != nil {
		return err
	}
	if !m.Verified {
		f.Fail("refusal.testnumber")
	}
	if f.OK() {
		_, err = ps.send(v, t, intake.Single{Number: m.Number, Sender: m.Sender, Message: text})
	}
	switch {
	case err != nil:
		return err
	case !f.OK():
		return ps.First(v, t)
	}
	return v.Redirect("/first/"+f.FormKey(), "")
}
