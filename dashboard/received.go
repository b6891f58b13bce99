package dashboard

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"intumwa/inbound/handsets"
)

const receivedOnPage = 25

// receivedPage is a list of a company's messages from handsets.
type receivedPage struct {
	Rows        []receivedRow
	Filtered    bool
	Later       bool   // this is not the first page
	First, Next string // addresses; Next is empty on the last page
	Export      string // address of all results, as a file
}

// receivedRow is a message from a handset as shown on a page.
type receivedRow struct{ handsets.Message }

// Text returns the text; empty when it came in a coding that is not read.
func (r receivedRow) Text() string {
	if r.Body == nil {
		return ""
	}
	return *r.Body
}

// received is GET /received: the messages from handsets to the company.
func (d *Dashboard) received(v *visit, t tenant) {
	f := v.parameters("number", "from", "to")
	filter := v.receivedFilter(f)
	if !f.ok() {
		v.renderForm("received", receivedPage{Filtered: true}, f)
		return
	}
	before := v.after("before")
	rows, next, err := v.listReceived(t, filter, before, receivedOnPage)
	if err != nil {
		v.handleError("listing messages from handsets", err)
		return
	}
	p := receivedPage{Later: before > 0, Filtered: len(f.values) > 0, First: f.address("/received"), Export: f.address("/received.csv")}
	for _, m := range rows {
		p.Rows = append(p.Rows, receivedRow{m})
	}
	p.Next = f.older("/received", next)
	v.renderPage(http.StatusOK, "received", p, f)
}

// receivedFilter reads the filter.
func (v *visit) receivedFilter(f *form) (filter handsets.Filter) {
	if text := f.Value("number"); text != "" {
		if filter.Senders = handsets.Foreign(text); filter.Senders == nil {
			number, ok := v.d.opts.Plan.Parse(text)
			if filter.Senders = []string{string(number)}; !ok {
				f.refuse("number", "error.number")
			}
		}
	}
	filter.From, filter.To = f.days()
	return filter
}

// listReceived is [handsets.Store.List]. Where the message before is not kept any more, none of the older ones is.
func (v *visit) listReceived(t tenant, filter handsets.Filter, before int64, limit int) ([]handsets.Message, int64, error) {
	page, next, err := v.d.rooms.Handsets.List(v.ctx(), t.company(), filter, before, limit)
	if errors.Is(err, handsets.ErrNotFound) {
		return nil, 0, nil
	}
	return page, next, err
}

// exportReceived is GET /received.csv: the messages that the parameters number, from and to ask for, the newest first.
func (d *Dashboard) exportReceived(v *visit, t tenant) {
	f := v.parameters("number", "from", "to")
	filter := v.receivedFilter(f)
	heads := []string{v.lang.T("csv.id"), v.lang.T("csv.time"), v.lang.T("received.from"), v.lang.T("received.to"), v.lang.T("csv.carrier"), v.lang.T("csv.text")}
	v.export(t, "received", heads, func(row func(...string) error) error {
		if !f.ok() {
			return nil
		}
		return eachRow(v, func(before int64, limit int) ([]handsets.Message, int64, error) {
			return v.listReceived(t, filter, before, limit)
		}, func(m *handsets.Message) error {
			return row(strconv.FormatInt(m.ID, 10), cellTime(&m.At), cell(strings.TrimPrefix(m.From, "+")), cell(strings.TrimPrefix(m.To, "+")),
				cell(m.Carrier), cell(receivedRow{*m}.Text()))
		})
	})
}
