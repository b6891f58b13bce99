package dashboard

import (
	"fmt"
	"strings"
	"unicode"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
)

// composePage is the page for writing a message.
type composePage struct {
	From     []option // approved sender IDs, and the test sender
	Test     testMode
	Credits  int64
	Approved bool // the company
	NoSender bool // only the test sender
	Measure  textSize
}

// textSize is the size of a text, computed as for billing.
type textSize struct {
	sms.Size
	Unicode bool
	Test    bool              // the test pool pays, not the credits
	SentAs  string            // where smart encoding changes the text
	Foreign firsts[character] // those that make it UCS-2
	Simple  int               // segments if they were replaced by similar GSM-7 characters; 0: not fewer
	After   int64             // credits left after it
	Most    int
}

// character is a character that is not in GSM-7.
type character struct {
	Text, Code, Instead string
	Unseen              bool // invisible
}

// measureOf returns the size of a text as the company would send it.
func measureOf(company *accounts.Company, text string, test bool, credits int64) textSize {
	sent := intake.Preview(company, text)
	m := textSize{Size: sms.Measure(sent), Test: test, Most: maxMessage}
	if sent != text {
		m.SentAs = sent
	}
	m.Unicode, m.After = m.Encoding == sms.UCS2, credits-int64(m.Segments)
	instead := map[string]string{}
	for _, c := range sms.UnicodeCharacters(sent) {
		instead[c] = sms.Transliterate(c)
		r := []rune(c)[0]
		each := character{Text: c, Code: fmt.Sprintf("U+%04X", r),
			Unseen: !unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.In(r, unicode.Mn, unicode.Me)}
		if instead[c] != c {
			each.Instead = instead[c]
		}
		m.Foreign.add(each)
	}
	var simple strings.Builder
	for _, r := range sent {
		if c, foreign := instead[string(r)]; foreign {
			simple.WriteString(c)
		} else {
			simple.WriteRune(r)
		}
	}
	if _, segments := sms.Count(simple.String()); segments > 0 && segments < m.Segments {
		m.Simple = segments
	}
	return m
}

// compose is GET /messages/new.
func (d *Dashboard) compose(v *visit, t tenant) error {
	f := v.form()
	f.formKey()
	senders, err := v.approvedSenders(t)
	if err != nil {
		return err
	}
	data := composePage{Approved: t.Company.Approved, NoSender: len(senders) == 0}
	if data.Credits, err = d.rooms.Ledger.Balance(v.ctx(), t.Company.ID); err != nil {
		return err
	}
	if data.Test, err = v.testMode(t.Company); err != nil {
		return err
	}
	data.From = append(senders, option{d.opts.TestSender, v.lang.T("compose.test", d.opts.TestSender)})
	text := strings.ToValidUTF8(strings.ReplaceAll(f.Value("message"), "\r\n", "\n"), "\uFFFD")
	test := f.Value("sender") == d.opts.TestSender || f.Value("sender") == "" && data.NoSender
	data.Measure = measureOf(&t.Company, text, test, data.Credits)
	return v.render("compose", data)
}

// doCompose is POST /messages/new: it checks or sends the message, depending on the button.
func (d *Dashboard) doCompose(v *visit, t tenant) error {
	f := v.form()
	if f.Value("do") == "check" {
		return d.compose(v, t)
	}
	req := intake.Single{Sender: f.sender("sender"), Number: f.number("number"), Message: f.text("message")}
	if !f.ok() {
		return d.compose(v, t)
	}
	id, err := v.send(t, req)
	switch {
	case err != nil:
		return err
	case !f.ok():
		return d.compose(v, t)
	}
	return v.redirect("/messages/"+id.String(), "flash.sent")
}
