package dashboard

import (
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/sms"
)

// statusTexts maps statuses to the keys of their texts.
var statusTexts = map[sms.Status]string{sms.Pending: "outcome.pending", sms.Sent: "outcome.sent", sms.Failed: "outcome.failed"}

// exportFilter returns the filter of the parameters; false when nothing can match.
func (v *visit) exportFilter() (f messages.Filter, ok bool) {
	p := v.period()
	f.From, f.To = p.from, p.to
	if name := v.c.Query("status"); name != "" {
		status, known := sms.ParseStatus(name)
		if !known {
			return f, false
		}
		f.Status = &status
	}
	for _, name := range []string{"q", "batch"} { // q: the query of the list of messages
		text := strings.TrimSpace(v.c.Query(name))
		if text == "" {
			continue
		}
		id, err := ulid.ParseStrict(text)
		switch {
		case err == nil:
			f.Batch = &id
			continue
		case name == "batch":
			return f, false
		}
		if f.Number, ok = v.d.opts.Plan.Parse(text); ok {
			continue
		}
		if f.Reference, ok = referenceIn(text); !ok {
			return f, false
		}
	}
	return f, true
}

// exportMessages is GET /messages.csv: the messages that the parameters from, to, status, batch and q (a number) ask for, the
// newest first. Numbers stand there without their plus sign, which a spreadsheet would take for a formula's.
func (d *Dashboard) exportMessages(v *visit, t tenant) {
	f, some := v.exportFilter()
	heads := []string{v.lang.T("csv.id"), v.lang.T("csv.time"), v.lang.T("csv.number"), v.lang.T("csv.sender"), v.lang.T("csv.status"),
		v.lang.T("csv.segments"), v.lang.T("csv.carrier"), v.lang.T("csv.batch"), v.lang.T("csv.sent"), v.lang.T("csv.failed"),
		v.lang.T("csv.reason"), v.lang.T("csv.text"), v.lang.T("csv.reference")}
	v.export(t, "messages", heads, func(row func(...string) error) error {
		if !some {
			return nil
		}
		return eachRow(v, v.listMessages(t, f), func(m *messages.Record) error {
			batch := ""
			if m.BatchULID != nil {
				batch = m.BatchULID.String()
			}
			return row(m.ULID.String(), cellTime(&m.CreatedAt), m.Number.Digits(), cell(m.Sender), v.lang.T(statusTexts[m.Status]),
				strconv.Itoa(m.Segments), cell(m.Carrier), batch, cellTime(m.SentAt), cellTime(m.FailedAt), cell(m.FailureReason), cell(m.Body), cell(m.Reference))
		})
	})
}
