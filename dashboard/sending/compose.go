package sending

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"intumwa/accounts"
	"intumwa/dashboard/testmode"
	"intumwa/dashboard/web"
	"intumwa/intake"
	"intumwa/sms"
)

// composePage is the page for writing a message.
type composePage struct {
	From     []web.Option // approved sender IDs, and the test sender
	Test     testmode.Mode
	Credits  int64
	Approved bool // the company
	NoSender bool // only the test sender
	Measure  textSize
}

// textSize is the size of a text, computed as in billing.
type textSize struct {
	sms.Size
	Unicode bool
	Test    bool                  // the test pool pays, not the credits
	Changed bool                  // by smart encoding
	From    string                // sender ID
	Parts   []string              // the text as handsets show it, by segment
	Foreign web.Firsts[character] // characters that make it UCS-2
	Similar bool                  // some have a similar GSM-7 text
	Simple  int                   // segments after replacing them; 0: no fewer
	After   int64                 // credits left after it
	Most    int
}

// character is a character that is not in GSM-7.
type character struct {
	Text, Code, Instead string
	Unseen              bool // invisible
}

// charactersOf returns the characters of a text that are not in GSM-7.
func charactersOf(text string) (list []character) {
	for _, c := range sms.UnicodeCharacters(text) {
		r := []rune(c)[0]
		each := character{Text: c, Code: fmt.Sprintf("U+%04X", r),
			Unseen: !unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.In(r, unicode.Mn, unicode.Me)}
		if similar := sms.LookAlikes(c); similar != c {
			each.Instead = similar
		}
		list = append(list, each)
	}
	return list
}

// measureOf returns the size of a text as the company would send it.
func measureOf(company *accounts.Company, text, from string, test bool, credits int64) textSize {
	sent := intake.Preview(company, text)
	m := textSize{Size: sms.Measure(sent), Test: test, Most: sms.MaxText, From: from, Parts: partsOf(sent),
		Changed: sent != text}
	m.Unicode, m.After = m.Encoding == sms.UCS2, credits-int64(m.Segments)
	for _, c := range charactersOf(sent) {
		m.Foreign.Add(c)
	}
	similar := sms.LookAlikes(sent)
	m.Similar = m.Unicode && similar != sent
	if _, segments := sms.Count(similar); segments > 0 && segments < m.Segments {
		m.Simple = segments
	}
	return m
}

// partsOf cuts a text into segments.
func partsOf(text string) (parts []string) {
	encoding, payload := sms.Encode(text)
	coding := map[sms.Encoding]uint8{sms.GSM7: 0, sms.UCS2: 8}[encoding]
	for _, segment := range sms.SplitEncoded(encoding, payload, false).Segments {
		part, _ := sms.Decode(coding, sms.DefaultGSM7, segment)
		parts = append(parts, part)
	}
	return parts
}

// Compose is GET /messages/new.
func (ps *Pages) Compose(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	f.FormKey()
	senders, err := ps.approvedSenders(v, t)
	if err != nil {
		return err
	}
	data := composePage{Approved: t.Company.Approved, NoSender: len(senders) == 0}
	if data.Credits, err = ps.Deps.Ledger.Balance(v.Ctx(), t.Company.ID); err != nil {
		return err
	}
	if data.Test, err = ps.Test.Mode(v, t.Company); err != nil {
		return err
	}
	data.From = append(senders, web.Option{Value: ps.Test.Sender, Text: v.Lang.T("compose.test", ps.Test.Sender)})
	text := strings.ToValidUTF8(strings.ReplaceAll(f.Value("message"), "\r\n", "\n"), "\uFFFD")
	from := cmp.Or(f.Value("sender"), data.From[0].Value)
	data.Measure = measureOf(&t.Company, text, from, from == ps.Test.Sender, data.Credits)
	return v.Render("compose", data)
}

// DoCompose is POST /messages/new: depending on the button, it checks the message, replaces look-alikes in it, or sends
// it.
func (ps *Pages) DoCompose(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	switch f.Value("do") {
	case "replace":
		f.Values.Set("message", sms.LookAlikes(f.Value("message")))
		return ps.Compose(v, t)
	case "check":
		return ps.Compose(v, t)
	}
	req := intake.Single{Sender: sender(f, "sender"), Number: f.Number(ps.Plan, "number"), Message: text(f, "message"),
		CostCenter: costCenter(f, "cost_center")}
	if !f.OK() {
		return ps.Compose(v, t)
	}
	id, err := ps.send(v, t, req)
	switch {
	case err != nil:
		return err
	case !f.OK():
		return ps.Compose(v, t)
	}
	return v.Redirect("/messages/"+id.String(), "flash.sent")
}
