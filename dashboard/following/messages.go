package following

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/oklog/ulid/v2"

	"intumwa/campaigns"
	"intumwa/dashboard/web"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
	"intumwa/sms"
	"intumwa/texts"
)

// messagesPage is a list of messages and its filter.
type messagesPage struct {
	web.Listing[lookup.Record]

	Numbered *lookup.Record // the message whose message_id was searched for
}

// Messages is GET /messages. A search for an id redirects to the company's message or batch. So does the parameter id,
// a message_id that may also look like a phone number.
func (ps *Pages) Messages(v *web.Visit, t web.Tenant) (err error) {
	if id := v.After("id"); id != 0 {
		r, err := ps.Deps.Lookup.ByID(v.Ctx(), t.CompanyID(), id)
		return v.Done(err, "/messages/"+r.ULID.String(), "")
	}
	f := v.Parameters("q", "status", "cost_center", "from", "to")
	filter, found := ps.messageFilter(v)
	var p messagesPage
	if q := f.Value("q"); q != "" {
		var path string
		if path, p.Numbered, err = ps.lookUp(v, t, q); err != nil {
			return err
		}
		if path != "" && (p.Numbered == nil || filter.Number == "") {
			return v.Redirect(path, "")
		}
	}
	p.Listing, err = web.List(v, "/messages", web.MessagesOnPage,
		func(before int64, limit int) ([]lookup.Record, int64, error) {
			if !found || filter.Batch != nil {
				return nil, 0, nil
			}
			return ps.Deps.Lookup.List(v.Ctx(), t.CompanyID(), filter, before, limit)
		})
	if err == nil && len(p.Rows) == 0 && filter.Reference != "" {
		named, err := ps.Deps.Lookup.ByCarrierID(v.Ctx(), t.CompanyID(), filter.Reference)
		if err != nil {
			return err
		}
		if len(named) == 1 {
			return v.Redirect("/messages/"+named[0].ULID.String(), "")
		}
	}
	return v.Page(err, "messages", p)
}

// messageFilter reads the filter of the form: q (a number, a client_reference, or a batch's ULID), batch, status,
// cost_center, from and to. It returns false when nothing can match.
func (ps *Pages) messageFilter(v *web.Visit) (filter lookup.Filter, ok bool) {
	f := v.Form()
	filter.From, filter.To = f.Days()
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
		if filter.Number, ok = ps.Plan.Parse(q); !ok {
			filter.Reference = q
			return filter, !strings.ContainsFunc(q, unicode.IsControl)
		}
	}
	return filter, true
}

// lookUp returns the path of the company's message or batch with that id, and the message itself if it was found by its
// message_id.
func (ps *Pages) lookUp(v *web.Visit, t web.Tenant, q string) (path string, numbered *lookup.Record, err error) {
	deps := &ps.Deps
	if id, bad := ulid.ParseStrict(q); bad == nil {
		if _, err = deps.Lookup.ByULID(v.Ctx(), t.CompanyID(), id); err == nil {
			return "/messages/" + id.String(), nil, nil
		}
		if errors.Is(err, messages.ErrNotFound) {
			_, err = deps.Messages.BatchByULID(v.Ctx(), t.CompanyID(), id)
			path = "/batches/" + id.String()
		}
	} else if id, bad := strconv.ParseInt(q, 10, 64); bad == nil && id > 0 {
		var r lookup.Record
		r, err = deps.Lookup.ByID(v.Ctx(), t.CompanyID(), id)
		path, numbered = "/messages/"+r.ULID.String(), &r
	}
	if errors.Is(err, messages.ErrNotFound) {
		return "", nil, nil
	}
	return path, numbered, err
}

// Message is GET /messages/:id, by ULID.
func (ps *Pages) Message(v *web.Visit, t web.Tenant) error {
	l, err := ps.timeline(v, t, v.ULID("id"))
	return v.Page(err, "message", l)
}

// batchPage is a batch, its progress and its messages.
type batchPage struct {
	messages.BatchRecord
	web.Listing[lookup.Record]

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

// Batch is GET /batches/:id, by ULID.
func (ps *Pages) Batch(v *web.Visit, t web.Tenant) (err error) {
	id := v.ULID("id")
	var p batchPage
	if p.BatchRecord, err = ps.Deps.Messages.BatchByULID(v.Ctx(), t.CompanyID(), id); err != nil {
		return err
	}
	p.Pending, p.Sent, p.Failed = p.Counts[sms.Pending], p.Counts[sms.Sent], p.Counts[sms.Failed]
	for _, reason := range slices.Sorted(maps.Keys(p.LeftOut)) {
		p.Left = append(p.Left, leftOut{v.Lang.Refusal(sms.Refusal{Reason: reason}), p.LeftOut[reason]})
	}
	if p.Awaited > 0 || p.Left != nil {
		if err := ps.paused(v, t, id, &p); err != nil {
			return err
		}
	}
	if p.Listing, err = web.List(v, "/batches/"+id.String(), web.MessagesOnPage,
		func(before int64, limit int) ([]lookup.Record, int64, error) {
			return ps.Deps.Lookup.List(v.Ctx(), t.CompanyID(), lookup.Filter{Batch: &id}, before, limit)
		}); err != nil {
		return err
	}
	p.Export = web.Address("/messages.csv", "batch", id.String())
	return v.Render("batch", p)
}

// paused sets why a campaign's next part was refused, if it was.
func (ps *Pages) paused(v *web.Visit, t web.Tenant, id ulid.ULID, p *batchPage) error {
	c, err := ps.Deps.Campaigns.Get(v.Ctx(), t.CompanyID(), id)
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
	reason, err := ps.Deps.Campaigns.Paused(v.Ctx(), &c, &p.BatchRecord)
	if reason != "" {
		p.Paused = v.Lang.Refusal(sms.Refusal{Reason: reason})
	}
	return err
}

// ExportMessages is GET /messages.csv: the messages of the list's filter, newest first. Numbers have no plus sign,
// because it begins a formula in a spreadsheet.
func (ps *Pages) ExportMessages(v *web.Visit, t web.Tenant) error {
	v.Parameters("q", "batch", "status", "cost_center", "from", "to")
	filter, found := ps.messageFilter(v)
	if !v.Form().OK() {
		return ps.Messages(v, t)
	}
	heads := v.Lang.Texts("csv.id", "csv.time", "csv.number", "csv.sender", "csv.status", "csv.segments", "csv.carrier",
		"csv.batch", "csv.sent", "csv.failed",
		"csv.reason", "csv.text", "csv.reference", "costcenter.title")
	return web.Export(v, t, "messages", heads, func(before int64, limit int) ([]lookup.Record, int64, error) {
		if !found {
			return nil, 0, nil
		}
		return ps.Deps.Lookup.List(v.Ctx(), t.CompanyID(), filter, before, limit)
	}, func(m *lookup.Record) []string {
		batch := ""
		if m.BatchULID != nil {
			batch = m.BatchULID.String()
		}
		return []string{m.ULID.String(), texts.CellTime(&m.CreatedAt), m.Number.Digits(), texts.Cell(m.Sender),
			v.Lang.T("status." + m.Status.String()),
			strconv.Itoa(m.Segments), texts.Cell(m.Carrier), batch, texts.CellTime(m.SentAt), texts.CellTime(m.FailedAt),
			texts.Cell(m.FailureReason), texts.Cell(m.Body), texts.Cell(m.Reference), texts.Cell(m.CostCenter)}
	})
}
