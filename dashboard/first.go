package dashboard

import (
	"cmp"
	"encoding/json"

	"intumwa/dashboard/web"
	"intumwa/intake"
)

// firstPage is the page for the first message: free of charge, from the test sender to the verified test number.
type firstPage struct {
	Test testMode
	Text string
	Curl string

	// Once it is sent:
	Answer string // the API's response, indented
	Life   *timeline
}

// first is GET /first.
func (d *Dashboard) first(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	f.FormKey()
	m, err := d.testMode(v, t.Company)
	if err != nil {
		return err
	}
	text := cmp.Or(f.Value("message"), v.Lang.T("first.example"))
	return v.Render("first", firstPage{Test: m, Text: text, Curl: d.curl("", exampleBody(m.Number, m.Sender, text))})
}

// sendFirst is POST /first.
func (d *Dashboard) sendFirst(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	text := text(f, "message")
	m, err := d.testMode(v, t.Company)
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

// firstSent is GET /first/:id, with the key of the sent form: the request, the response, and the message's timeline.
func (d *Dashboard) firstSent(v *web.Visit, t web.Tenant) error {
	key := v.C.Param("id")
	if !web.IsFormKey(key) {
		return web.ErrNotFound
	}
	body, known, err := d.rooms.Intake.Answered(v.Ctx(), t.User.ID, web.KeyPrefix+key)
	if err != nil {
		return err
	}
	var answer intake.Accepted
	if !known || json.Unmarshal(body, &answer) != nil {
		return web.ErrNotFound
	}
	l, err := d.timeline(v, t, answer.ID)
	if err != nil {
		return err
	}
	return v.Render("firstsent", firstPage{Curl: d.curl("", exampleBody(l.Number, l.Sender, l.Body)), Answer: web.Indented(string(body)), Life: l})
}
