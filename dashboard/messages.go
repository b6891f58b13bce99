package dashboard

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"intumwa/dashboard/words"
	"intumwa/messages"
	"intumwa/sms"
)

var bujumbura = words.Bujumbura

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
	f := v.parameters("status", "from", "to")
	if q := strings.TrimSpace(v.c.Query("q")); q != "" { // as it is: readSearch refuses what no message can have
		f.values.Set("q", q)
	}
	p := messagesPage{Query: f.Value("q"), Status: f.Value("status"), From: f.Value("from"), To: f.Value("to")}
	filter, found, done := v.readSearch(t, f, &p)
	if done {
		return
	}
	if !f.ok() {
		v.renderForm("messages", p, f)
		return
	}
	before, next := v.after("before"), int64(0)
	p.Later, p.Filtered, p.First, p.Export = before > 0, len(f.values) > 0, f.address("/messages"), f.address("/messages.csv")
	if found {
		var err error
		if p.Rows, next, err = fill(before, messagesOnPage, v.listMessages(t, filter)); err != nil {
			v.handleError("listing messages", err)
			return
		}
	}
	p.Next = f.older("/messages", next)
	v.render(http.StatusOK, "messages", p)
}

// listMessages returns the function that reads a part of the list.
func (v *visit) listMessages(t tenant, f messages.Filter) func(before int64, limit int) ([]messages.Record, int64, error) {
	return func(before int64, limit int) ([]messages.Record, int64, error) {
		return v.d.rooms.Messages.List(v.ctx(), t.company(), f, before, limit)
	}
}

// readSearch reads the filter. found is false when nothing can match. done means that it has redirected to the message
// or batch that was searched for.
func (v *visit) readSearch(t tenant, f *form, p *messagesPage) (filter messages.Filter, found, done bool) {
	if p.Status != "" {
		status, known := sms.ParseStatus(p.Status)
		if !known {
			p.Status = ""
			f.values.Del("status")
		} else {
			filter.Status = &status
		}
	}
	filter.From, filter.To = f.days()
	if p.Query == "" {
		return filter, true, false
	}
	if len(p.Query) > 100 {
		p.Query = ""
		f.values.Del("q")
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

// message is GET /messages/:id, by ULID.
func (d *Dashboard) message(v *visit, t tenant) {
	id, ok := v.ulid("id")
	if !ok {
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
	Next, Export          string
}

// Live reports whether messages are still pending.
func (p batchPage) Live() bool { return p.Pending > 0 }

// Share returns n as a part of all recipients, in thousandths, for a chart.
func (p batchPage) Share(n int) int { return n * 1000 / max(1, p.Recipients) }

// batch is GET /batches/:id, by ULID.
func (d *Dashboard) batch(v *visit, t tenant) {
	id, ok := v.ulid("id")
	if !ok {
		return
	}
	var p batchPage
	var err error
	if p.BatchRecord, err = d.rooms.Messages.BatchByULID(v.ctx(), t.company(), id); err != nil {
		v.handleError("reading a batch", err)
		return
	}
	p.Pending, p.Sent, p.Failed = p.Counts[sms.Pending], p.Counts[sms.Sent], p.Counts[sms.Failed]
	before := v.after("before")
	p.Later, p.Export = before > 0, address("/messages.csv", "batch", id.String())
	rows, next, err := d.rooms.Messages.List(v.ctx(), t.company(), messages.Filter{Batch: &id}, before, messagesOnPage)
	if err != nil {
		v.handleError("reading a batch", err)
		return
	}
	p.Rows, p.Next = rows, v.newForm().older("/batches/"+id.String(), next)
	v.render(http.StatusOK, "batch", p)
}
