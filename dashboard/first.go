package dashboard

import (
	"cmp"
	"encoding/json"

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
func (d *Dashboard) first(v *visit, t tenant) error {
	f := v.form()
	f.formKey()
	m, err := v.testMode(t.Company)
	if err != nil {
		return err
	}
	text := cmp.Or(f.Value("message"), v.lang.T("first.example"))
	return v.render("first", firstPage{Test: m, Text: text, Curl: d.curl("", exampleBody(m.Number, m.Sender, text))})
}

// sendFirst is POST /first.
func (d *Dashboard) sendFirst(v *visit, t tenant) error {
	f := v.form()
	text := f.text("message")
	m, err := v.testMode(t.Company)
	if err != nil {
		return err
	}
	if !m.Verified {
		f.notice("refusal.testnumber")
	}
	if f.ok() {
		_, err = v.send(t, intake.Single{Number: m.Number, Sender: m.Sender, Message: text})
	}
	switch {
	case err != nil:
		return err
	case !f.ok():
		return d.first(v, t)
	}
	return v.redirect("/first/"+f.formKey(), "")
}

// firstSent is GET /first/:id, with the key of the sent form: the request, the response, and the message's timeline.
func (d *Dashboard) firstSent(v *visit, t tenant) error {
	key := v.c.Param("id")
	if !isFormKey(key) {
		return errNotFound
	}
	body, known, err := d.rooms.Intake.Answered(v.ctx(), t.User.ID, keyPrefix+key)
	if err != nil {
		return err
	}
	var answer intake.Accepted
	if !known || json.Unmarshal(body, &answer) != nil {
		return errNotFound
	}
	l, err := v.timeline(t, answer.ID)
	if err != nil {
		return err
	}
	return v.render("firstsent", firstPage{Curl: d.curl("", exampleBody(l.Number, l.Sender, l.Body)), Answer: indented(string(body)), Life: l})
}
