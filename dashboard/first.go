package dashboard

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/oklog/ulid/v2"

	"intumwa/intake"
	"intumwa/messages"
)

// firstPage is the page for the first message: to the verified test number, from the test sender, free of charge.
type firstPage struct {
	Test testMode
	Text string
	Curl string

	// After it was sent:
	Answer string // the API's response, indented
	Life   *timeline
}

// first is GET /first.
func (d *Dashboard) first(v *visit, t tenant) {
	f := v.newForm()
	f.values.Set("key", newFormKey())
	v.showFirst(http.StatusOK, t, f)
}

func (v *visit) showFirst(status int, t tenant, f *form) {
	m, err := v.testMode(t.Company)
	if err != nil {
		v.handleError("reading a test number", err)
		return
	}
	text := f.Value("message")
	if text == "" {
		text = v.lang.T("first.example")
	}
	v.renderPage(status, "first", firstPage{Test: m, Text: text, Curl: v.d.curl(string(m.Number), m.Sender, text)}, f)
}

// curl returns the command that sends a message.
func (d *Dashboard) curl(number, sender, text string) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	return "curl -X POST " + quote(d.opts.APIURL+"/sms") + " \\\n" +
		"  -H 'Authorization: Bearer YOUR_API_KEY' \\\n" +
		"  -H 'Content-Type: application/json' \\\n" +
		"  -H 'Accept: application/json' \\\n" +
		"  -d " + quote(jsonText(struct {
		Number  string `json:"phone_number"`
		Sender  string `json:"sender"`
		Message string `json:"message"`
	}{number, sender, text}))
}

func jsonText(value any) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // never fails for texts
	return strings.TrimSpace(out.String())
}

// sendFirst is POST /first.
func (d *Dashboard) sendFirst(v *visit, t tenant) {
	f := v.form()
	text := f.text("message")
	m, err := v.testMode(t.Company)
	switch {
	case err != nil:
		v.handleError("reading a test number", err)
		return
	case !m.Verified:
		f.notice("refusal.testnumber")
	}
	if !f.ok() {
		v.showFirst(http.StatusUnprocessableEntity, t, f)
		return
	}
	_, status, ok := v.send(t, f, intake.Single{Number: m.Number, Sender: m.Sender, Message: text})
	switch {
	case ok:
		v.redirect("/first/"+f.formKey(), "")
	case status != 0:
		v.showFirst(status, t, f)
	}
}

// firstSent is GET /first/:id, with the key of the sent form: the request, the response, and the message's timeline.
func (d *Dashboard) firstSent(v *visit, t tenant) {
	key := v.c.Param("id")
	if !isFormKey(key) {
		v.renderError(http.StatusNotFound)
		return
	}
	body, known, err := d.rooms.Intake.Answered(v.ctx(), t.User.ID, keyPrefix+key)
	if err != nil {
		v.handleError("reading an answer", err)
		return
	}
	var answer struct {
		ID ulid.ULID `json:"id"`
	}
	if !known || json.Unmarshal(body, &answer) != nil {
		v.renderError(http.StatusNotFound)
		return
	}
	r, err := d.rooms.Messages.ByULID(v.ctx(), t.company(), answer.ID)
	var l *timeline
	if err == nil {
		l, err = v.timeline(t, r)
	}
	if err != nil {
		v.handleError("reading a message", err)
		return
	}
	var laid bytes.Buffer
	_ = json.Indent(&laid, body, "", "  ") // the API's own response is valid JSON
	v.render(http.StatusOK, "firstsent", firstPage{Curl: v.d.curlOf(r), Answer: laid.String(), Life: l})
}

func (d *Dashboard) curlOf(r messages.Record) string {
	return d.curl(string(r.Number), r.Sender, r.Body)
}
