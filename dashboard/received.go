package dashboard

import (
	"errors"
	"net/http"
	"net/url"
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
	if next > 0 {
		p.Next = f.address("/received", "before", strconv.FormatInt(next, 10))
	}
	v.renderPage(http.StatusOK, "received", p, f)
}

// parameters returns the named parameters of a list as a form.
func (v *visit) parameters(names ...string) *form {
	f := newForm()
	f.v = v
	for _, name := range names {
		if text := strings.TrimSpace(v.c.Query(name)); text != "" && len(text) <= maxQuery {
			f.values.Set(name, strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), ""))
		}
	}
	return f
}

// address returns the address of a list with the form's values as parameters, and with others.
func (f *form) address(path string, more ...string) string {
	all := url.Values{}
	for name := range f.values {
		all.Set(name, f.Value(name))
	}
	for i := 0; i < len(more); i += 2 {
		all.Set(more[i], more[i+1])
	}
	if len(all) == 0 {
		return path
	}
	return path + "?" + all.Encode()
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
	filter.From = f.day("from", f.Value("from"))
	if filter.To = f.day("to", f.Value("to")); !filter.To.IsZero() {
		filter.To = filter.To.AddDate(0, 0, 1) // that day included
	}
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
		for before := int64(0); f.ok(); {
			var page []handsets.Message
			var next int64
			if err := v.inTurn(func() (err error) {
				page, next, err = v.listReceived(t, filter, before, messagesAtOnce)
				return err
			}); err != nil {
				return err
			}
			for _, m := range page {
				if err := row(strconv.FormatInt(m.ID, 10), cellTime(&m.At), cell(strings.TrimPrefix(m.From, "+")), cell(strings.TrimPrefix(m.To, "+")),
					cell(m.Carrier), cell(receivedRow{m}.Text())); err != nil {
					return err
				}
			}
			if next == 0 {
				return nil
			}
			before = next
		}
		return nil
	})
}
