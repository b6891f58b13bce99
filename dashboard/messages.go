package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"intumwa/dashboard/words"
	"intumwa/messages"
	"intumwa/sms"
)

var bujumbura = words.Bujumbura

const (
	messagesOnPage = 25
	searchFor      = 25 * time.Millisecond // the least time of a search that does not fill a page
)

// messagesPage is a list of messages and its filter.
type messagesPage struct {
	Query, Status, From, To string
	Rows                    []messages.Record
	Numbered                *messages.Record // the message whose message_id was searched for
	Filtered                bool
	Later                   bool   // this is not the first page
	First, Next             string // addresses; Next is empty on the last page
	Export                  string // address of all results, as a file
}

// messages is GET /messages.
func (d *Dashboard) messages(v *visit, t tenant) {
	query := v.c.Request.URL.Query()
	f := newForm()
	f.v = v
	p := messagesPage{Query: strings.TrimSpace(query.Get("q")), Status: query.Get("status"), From: query.Get("from"), To: query.Get("to"), First: "/messages"}
	filter, found, done := v.readSearch(t, f, &p)
	if done {
		return
	}
	if !f.ok() {
		v.renderForm("messages", p, f)
		return
	}
	before, err := strconv.ParseInt(query.Get("before"), 10, 64)
	p.Later = err == nil && before > 0
	if !p.Later {
		before = 0
	}
	next := int64(0)
	if found {
		p.Rows, next, err = v.searchMessages(t, filter, before)
		if err != nil {
			v.handleError("listing messages", err)
			return
		}
	}
	filters := url.Values{}
	for name, value := range map[string]string{"q": p.Query, "status": p.Status, "from": p.From, "to": p.To} {
		if value != "" {
			filters.Set(name, value)
		}
	}
	p.Export = "/messages.csv"
	p.Filtered = len(filters) > 0
	if p.Filtered {
		p.First += "?" + filters.Encode()
		p.Export += "?" + filters.Encode()
	}
	if next > 0 {
		filters.Set("before", strconv.FormatInt(next, 10))
		p.Next = "/messages?" + filters.Encode()
	}
	v.render(http.StatusOK, "messages", p)
}

// searchMessages reads one page. If few messages match the filter, it searches further back for a limited time; the page
// then has a link to continue.
func (v *visit) searchMessages(t tenant, f messages.Filter, before int64) (rows []messages.Record, next int64, err error) {
	next = before
	for start := time.Now(); ; {
		var more []messages.Record
		more, next, err = v.d.rooms.Messages.List(v.ctx(), t.company(), f, next, messagesOnPage-len(rows))
		rows = append(rows, more...)
		if err != nil || len(rows) == messagesOnPage || next == 0 || time.Since(start) > searchFor {
			return rows, next, err
		}
	}
}

// readSearch reads the filter. found is false when nothing can match. done means that it has redirected to the message
// or batch that was searched for.
func (v *visit) readSearch(t tenant, f *form, p *messagesPage) (filter messages.Filter, found, done bool) {
	if p.Status != "" {
		status, known := sms.ParseStatus(p.Status)
		if !known {
			p.Status = ""
		} else {
			filter.Status = &status
		}
	}
	filter.From = f.day("from", p.From)
	if filter.To = f.day("to", p.To); !filter.To.IsZero() {
		filter.To = filter.To.AddDate(0, 0, 1) // that day included
	}
	if p.Query == "" {
		return filter, true, false
	}
	if len(p.Query) > 100 {
		p.Query = ""
		return filter, false, false
	}
	if id, err := ulid.ParseStrict(p.Query); err == nil {
		return filter, false, v.toULID(t, id)
	}
	var err error
	if id, notNumber := strconv.ParseInt(p.Query, 10, 64); notNumber == nil && id > 0 {
		var r messages.Record
		if r, err = v.d.rooms.Messages.ByID(v.ctx(), t.company(), id); err == nil {
			p.Numbered = &r
		}
	}
	if err != nil && !errors.Is(err, messages.ErrNotFound) {
		v.handleError("looking up a message", err)
		return filter, false, true
	}
	number, isNumber := v.d.opts.Plan.Parse(p.Query)
	switch {
	case isNumber:
		filter.Number = number
	case p.Numbered != nil:
		v.redirect("/messages/"+p.Numbered.ULID.String(), "")
		return filter, false, true
	default:
		filter.Reference, found = referenceIn(p.Query)
		return filter, found, false
	}
	return filter, true, false
}

// referenceIn returns a text that a customer may have given messages as their name.
func referenceIn(text string) (reference string, ok bool) {
	return text, utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// toULID redirects to the company's message or batch with that id; false when there is none.
func (v *visit) toULID(t tenant, id ulid.ULID) (done bool) {
	_, err := v.d.rooms.Messages.ByULID(v.ctx(), t.company(), id)
	to := "/messages/"
	if errors.Is(err, messages.ErrNotFound) {
		_, err = v.d.rooms.Messages.BatchByULID(v.ctx(), t.company(), id)
		to = "/batches/"
	}
	switch {
	case errors.Is(err, messages.ErrNotFound):
		return false
	case err != nil:
		v.handleError("looking up a message", err)
	default:
		v.redirect(to+id.String(), "")
	}
	return true
}

// day parses a date field and returns midnight in Bujumbura; the zero time when it is empty.
func (f *form) day(field, value string) time.Time {
	if value == "" {
		return time.Time{}
	}
	day, err := time.ParseInLocation(time.DateOnly, value, bujumbura)
	if err != nil || day.Year() < 2000 || day.Year() > 9999 {
		f.refuse(field, "error.date")
		return time.Time{}
	}
	return day
}

// message is GET /messages/:id, by ULID.
func (d *Dashboard) message(v *visit, t tenant) {
	id, err := ulid.ParseStrict(v.c.Param("id"))
	if err != nil {
		v.renderError(http.StatusNotFound)
		return
	}
	r, err := d.rooms.Messages.ByULID(v.ctx(), t.company(), id)
	var l *timeline
	if err == nil {
		l, err = v.timeline(t, r)
	}
	if err != nil {
		v.handleError("reading a message", err)
		return
	}
	v.render(http.StatusOK, "message", l)
}

// batchPage is a batch, its progress and its messages.
type batchPage struct {
	messages.BatchRecord
	Pending, Sent, Failed int
	Rows                  []messages.Record
	Later                 bool
	Next                  string
}

// Live reports whether messages are still pending.
func (p batchPage) Live() bool { return p.Pending > 0 }

// Share returns n as a part of all recipients, in thousandths, for a chart.
func (p batchPage) Share(n int) int { return n * 1000 / max(1, p.Recipients) }

// batch is GET /batches/:id, by ULID.
func (d *Dashboard) batch(v *visit, t tenant) {
	id, err := ulid.ParseStrict(v.c.Param("id"))
	if err != nil {
		v.renderError(http.StatusNotFound)
		return
	}
	var p batchPage
	if p.BatchRecord, err = d.rooms.Messages.BatchByULID(v.ctx(), t.company(), id); err != nil {
		v.handleError("reading a batch", err)
		return
	}
	p.Pending, p.Sent, p.Failed = p.Counts[sms.Pending], p.Counts[sms.Sent], p.Counts[sms.Failed]
	before, err := strconv.ParseInt(v.c.Query("before"), 10, 64)
	p.Later = err == nil && before > 0
	if !p.Later {
		before = 0
	}
	rows, next, err := d.rooms.Messages.List(v.ctx(), t.company(), messages.Filter{Batch: &id}, before, messagesOnPage)
	if err != nil {
		v.handleError("reading a batch", err)
		return
	}
	p.Rows = rows
	if next > 0 {
		p.Next = "/batches/" + id.String() + "?before=" + strconv.FormatInt(next, 10)
	}
	v.render(http.StatusOK, "batch", p)
}
