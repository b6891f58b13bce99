package dashboard

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/oklog/ulid/v2"

	"intumwa/campaigns"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
	"intumwa/sms"
)

// messagesPage is a list of messages and its filter.
type messagesPage struct {
	listing[lookup.Record]

	Numbered *lookup.Record // the message whose message_id was searched for
}

// messages is GET /messages. A search for an id redirects to the company's message or batch. So does the parameter id,
// a message_id that may also look like a phone number.
func (d *Dashboard) messages(v *visit, t tenant) (err error) {
	if id := v.after("id"); id != 0 {
		r, err := d.rooms.Lookup.ByID(v.ctx(), t.company(), id)
		return v.done(err, "/messages/"+r.ULID.String(), "")
	}
	f := v.parameters("q", "status", "cost_center", "from", "to")
	filter, found := v.messageFilter()
	var p messagesPage
	if q := f.Value("q"); q != "" {
		var path string
		if path, p.Numbered, err = v.lookUp(t, q); err != nil {
			return err
		}
		if path != "" && (p.Numbered == nil || filter.Number == "") {
			return v.redirect(path, "")
		}
	}
	p.listing, err = list(v, "/messages", messagesOnPage, func(before int64, limit int) ([]lookup.Record, int64, error) {
		if !found || filter.Batch != nil {
			return nil, 0, nil
		}
		return d.rooms.Lookup.List(v.ctx(), t.company(), filter, before, limit)
	})
	if err == nil && len(p.Rows) == 0 && filter.Reference != "" {
		named, err := d.rooms.Lookup.ByCarrierID(v.ctx(), t.company(), filter.Reference)
		if err != nil {
			return err
		}
		if len(named) == 1 {
			return v.redirect("/messages/"+named[0].ULID.String(), "")
		}
	}
	return v.page(err, "messages", p)
}

// messageFilter reads the filter of the form: q (a number, a client_reference, or a batch's ULID), batch, status,
// cost_center, from and to. It returns false when nothing can match.
func (v *visit) messageFilter() (filter lookup.Filter, ok bool) {
	f := v.form()
	filter.From, filter.To = f.days()
	filter.CostCenter = f.Value("cost_center")
	if name := f.Value("status"); name != "" {
		status, known := sms.ParseStatus(name)
		if !known {
			return filter, false
		}
		filter.Status = &status
	}
	batch := cmp.Or(f.Value("batch"), f.Value("q"))
	if id, err := ulid.ParseStrict(batch); err == nil {
		filter.Batch = &id
		return filter, true
	}
	if f.Value("batch") != "" {
		return filter, false
	}
	if q := f.Value("q"); q != "" {
		if filter.Number, ok = v.d.opts.Plan.Parse(q); !ok {
			filter.Reference = q
			return filter, !strings.ContainsFunc(q, unicode.IsControl)
		}
	}
	return filter, true
}

// lookUp returns the path of the company's message or batch with that id, and the message itself if it was found by its
// message_id.
func (v *visit) lookUp(t tenant, q string) (path string, numbered *lookup.Record, err error) {
	rooms := &v.d.rooms
	if id, bad := ulid.ParseStrict(q); bad == nil {
		if _, err = rooms.Lookup.ByULID(v.ctx(), t.company(), id); err == nil {
			return "/messages/" + id.String(), nil, nil
		}
		if errors.Is(err, messages.ErrNotFound) {
			_, err = rooms.Messages.BatchByULID(v.ctx(), t.company(), id)
			path = "/batches/" + id.String()
		}
	} else if id, bad := strconv.ParseInt(q, 10, 64); bad == nil && id > 0 {
		var r lookup.Record
		r, err = rooms.Lookup.ByID(v.ctx(), t.company(), id)
		path, numbered = "/messages/"+r.ULID.String(), &r
	}
	if errors.Is(err, messages.ErrNotFound) {
		return "", nil, nil
	}
	return path, numbered, err
}

// message is GET /messages/:id, by ULID.
func (d *Dashboard) message(v *visit, t tenant) error {
	l, err := v.timeline(t, v.ulid("id"))
	return v.page(err, "message", l)
}

// batchPage is a batch, its progress and its messages.
type batchPage struct {
	messages.BatchRecord
	listing[lookup.Record]

	Pending, Sent, Failed int

	Left   []leftOut // recipients that later parts of a campaign left out
	List   bool      // their numbers are still kept
	Paused string    // why its next part was refused; empty: it was not
	Until  time.Time // when the remaining parts are given up
}

// leftOut counts recipients that were left out for one reason.
type leftOut struct {
	Why string
	N   int
}

// Live reports whether the page changes without the user's action.
func (p batchPage) Live() bool { return p.Pending > 0 || p.Awaited > 0 && p.Paused == "" }

// Shares returns how many thousandths of all recipients are sent, and how many failed, for a chart.
func (p batchPage) Shares() []int64 {
	return statistics.Shares(int64(p.Sent), int64(p.Failed), int64(p.All()-p.Sent-p.Failed))
}

// batch is GET /batches/:id, by ULID.
func (d *Dashboard) batch(v *visit, t tenant) (err error) {
	id := v.ulid("id")
	var p batchPage
	if p.BatchRecord, err = d.rooms.Messages.BatchByULID(v.ctx(), t.company(), id); err != nil {
		return err
	}
	p.Pending, p.Sent, p.Failed = p.Counts[sms.Pending], p.Counts[sms.Sent], p.Counts[sms.Failed]
	for _, reason := range slices.Sorted(maps.Keys(p.LeftOut)) {
		p.Left = append(p.Left, leftOut{v.lang.Refusal(sms.Refusal{Reason: reason}), p.LeftOut[reason]})
	}
	if p.Awaited > 0 || p.Left != nil {
		if err := v.paused(t, id, &p); err != nil {
			return err
		}
	}
	if p.listing, err = list(v, "/batches/"+id.String(), messagesOnPage, func(before int64, limit int) ([]lookup.Record, int64, error) {
		return d.rooms.Lookup.List(v.ctx(), t.company(), lookup.Filter{Batch: &id}, before, limit)
	}); err != nil {
		return err
	}
	p.Export = address("/messages.csv", "batch", id.String())
	return v.render("batch", p)
}

// paused sets why a campaign's next part was refused, if it was.
func (v *visit) paused(t tenant, id ulid.ULID, p *batchPage) error {
	c, err := v.d.rooms.Campaigns.Get(v.ctx(), t.company(), id)
	switch {
	case errors.Is(err, campaigns.ErrNotFound): // all parts are sent
		return nil
	case err != nil:
		return err
	}
	p.Until, p.List = c.CreatedAt.Add(campaigns.Life), p.Left != nil
	if p.Awaited == 0 {
		return nil
	}
	reason, err := v.d.rooms.Campaigns.Paused(v.ctx(), &c, &p.BatchRecord)
	if reason != "" {
		p.Paused = v.lang.Refusal(sms.Refusal{Reason: reason})
	}
	return err
}

// exportLeftOut is GET /batches/:id/left-out.csv: the recipients that later parts of a campaign left out.
func (d *Dashboard) exportLeftOut(v *visit, t tenant) error {
	made, err := d.rooms.Campaigns.Get(v.ctx(), t.company(), v.ulid("id"))
	if err != nil {
		return err
	}
	return v.exportRows(t, &made, campaigns.Faults, func(r *campaigns.Row) string { return v.lang.Refusal(sms.Refusal{Reason: r.Fault}) })
}

// continueCampaign is POST /batches/:id/continue: the reason for the pause is gone, or the user sends it instead of the
// person who did.
func (d *Dashboard) continueCampaign(v *visit, t tenant) error {
	id := v.ulid("id")
	return v.done(d.rooms.Campaigns.Continue(v.ctx(), t.company(), id, t.User.ID), "/batches/"+id.String(), "flash.campaign.continue")
}

// cancelBatch is POST /batches/:id/cancel. It continues even if the browser disconnects.
func (d *Dashboard) cancelBatch(v *visit, t tenant) error {
	batch, err := d.rooms.Messages.BatchByULID(v.ctx(), t.company(), v.ulid("id"))
	if err != nil {
		return err
	}
	done, err := v.by().CancelBatch(context.WithoutCancel(v.ctx()), batch.ULID, messages.Queued{Company: t.Company.ID, Batch: batch.Key}, "")
	if err == nil {
		err = d.rooms.Campaigns.Delete(v.ctx(), batch.ULID) // its further parts
	}
	flash := "flash.batch.cancelled"
	if err == nil && done.Cancelled == 0 && batch.Awaited == 0 {
		flash = "flash.batch.uncancelled"
	}
	return v.done(err, "/batches/"+batch.ULID.String(), flash)
}

// exportMessages is GET /messages.csv: the messages of the list's filter, newest first. Numbers have no plus sign,
// because it begins a formula in a spreadsheet.
func (d *Dashboard) exportMessages(v *visit, t tenant) error {
	v.parameters("q", "batch", "status", "cost_center", "from", "to")
	filter, found := v.messageFilter()
	if !v.form().ok() {
		return d.messages(v, t)
	}
	heads := v.texts("csv.id", "csv.time", "csv.number", "csv.sender", "csv.status", "csv.segments", "csv.carrier", "csv.batch", "csv.sent", "csv.failed",
		"csv.reason", "csv.text", "csv.reference", "costcenter.title")
	return export(v, t, "messages", heads, func(before int64, limit int) ([]lookup.Record, int64, error) {
		if !found {
			return nil, 0, nil
		}
		return d.rooms.Lookup.List(v.ctx(), t.company(), filter, before, limit)
	}, func(m *lookup.Record) []string {
		batch := ""
		if m.BatchULID != nil {
			batch = m.BatchULID.String()
		}
		return []string{m.ULID.String(), cellTime(&m.CreatedAt), m.Number.Digits(), cell(m.Sender), v.lang.T("status." + m.Status.String()),
			strconv.Itoa(m.Segments), cell(m.Carrier), batch, cellTime(m.SentAt), cellTime(m.FailedAt), cell(m.FailureReason), cell(m.Body), cell(m.Reference), cell(m.CostCenter)}
	})
}
