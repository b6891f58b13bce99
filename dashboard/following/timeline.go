package following

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/messages/lookup"
	"intumwa/reports/exports"
	"intumwa/sms"
	"intumwa/texts"
	"intumwa/webhooks"
)

// timeline is a message with its history.
type timeline struct {
	lookup.Record
	Moments []moment // past, in order of time
	Ahead   []moment // future, with the time where known
	Live    bool     // the page refreshes automatically: more is expected soon
}

// Unicode reports whether the text is sent in UCS-2.
func (l *timeline) Unicode() bool { return l.Encoding == sms.UCS2 }

// moment is one entry of a timeline, in the user's language.
type moment struct {
	At     time.Time // zero: unknown
	Kind   string    // of the badge: good, bad, wait, off
	Title  string
	Detail []string
	Link   string    // of the title; empty: none
	rank   int       // order among entries of the same time
	after  time.Time // shown after this time, whatever its own time
}

// Clock returns the time of day in milliseconds.
func (m moment) Clock() string { return m.At.In(texts.Bujumbura).Format("15:04:05.000") }

// place returns the time for sorting: a receipt may arrive before its submit_sm_resp, but is shown after it.
func (m moment) place() time.Time {
	if m.At.Before(m.after) {
		return m.after
	}
	return m.At
}

// timeline reads a company's message and its history.
func (ps *Pages) timeline(v *web.Visit, t web.Tenant, id ulid.ULID) (*timeline, error) {
	r, err := ps.Deps.Lookup.ByULID(v.Ctx(), t.CompanyID(), id)
	if err != nil {
		return nil, err
	}
	history, err := ps.Deps.Lookup.HistoryOf(v.Ctx(), r.ID)
	if err != nil {
		return nil, err
	}
	deliveries, _, err := ps.Deps.Webhooks.Deliveries(v.Ctx(), t.CompanyID(), webhooks.Filter{MessageID: r.ID}, 0, 2)
	if err != nil {
		return nil, err
	}
	why, err := ps.failures(v, r)
	if err != nil {
		return nil, err
	}
	return newTimeline(v, r, history, deliveries, why[0]), nil
}

// newTimeline lays out a message's history. why is why it failed.
func newTimeline(v *web.Visit, r lookup.Record, h lookup.History, deliveries []webhooks.Delivery,
	why whyFailed) *timeline {
	T, l := v.Lang.T, &timeline{Record: r, Live: !r.Status.Final()}
	delivered := 0
	l.add(moment{At: r.CreatedAt, Kind: "good", Title: T("life.accepted"), rank: 0,
		Detail: []string{v.Lang.N("life.segments", r.Segments) + " · " + encoding(v, r.Encoding)}})
	queued := r.Carrier
	if on := h.Second; on != nil {
		queued = on.From
		text, carriers := exports.Describe(v.Lang, on.Reason)
		l.add(moment{At: on.At, Kind: "wait", Title: T("life.senton", on.To), Detail: joined(text, carrierWords(v, carriers)),
			rank: 3})
	}
	l.add(moment{At: r.CreatedAt, Kind: "good", Title: T("life.queued"), Detail: []string{T("life.carrier", queued)},
		rank: 1})
	if no := h.Refused; no != nil {
		title := "life.refused"
		if h.Waiting == nil {
			title = "life.wasrefused"
		}
		l.add(moment{At: no.At, Kind: "wait", Title: T(title), Detail: joined(carrierWords(v, no.Reason)), rank: 2})
	}
	for _, s := range h.Segments {
		sent := moment{At: s.SubmittedAt, Kind: "wait", Title: T("life.unanswered"),
			Detail: []string{T("life.carrier", s.Carrier)}, rank: 2}
		if s.Submitted() {
			sent.Kind, sent.Title, sent.Detail = "good", T("life.submitted", s.Segment, r.Segments),
				[]string{T("life.link", s.Link)}
			if s.Unanswered() {
				sent.Detail = append(sent.Detail, T("life.unanswered"))
			} else if id := s.ID(); id != "" {
				sent.Detail = append(sent.Detail, T("life.carrierid", id))
			}
		}
		l.add(sent)
		if s.Receipt == "DELIVRD" {
			delivered++
		}
		if s.ReceiptAt != nil && s.Receipt != "" {
			kind := "good"
			if r.Status == sms.Failed {
				kind = "off"
			}
			l.add(moment{At: *s.ReceiptAt, Kind: kind, Title: T("life.receipt", s.Segment),
				Detail: joined(carrierWords(v, s.Receipt, errorOf(s.Error))), rank: 3, after: s.SubmittedAt})
		}
	}
	for _, k := range h.Receipts {
		l.add(moment{At: k.At, Kind: "off", Title: T("life.otherreceipt"),
			Detail: joined(carrierWords(v, k.State, errorOf(k.Error))), rank: 3})
	}
	if r.SentAt != nil {
		title := "life.sent"
		if delivered == r.Segments {
			title = "life.delivered"
		}
		l.add(moment{At: *r.SentAt, Kind: "good", Title: T(title), rank: 4})
	}
	if r.FailedAt != nil {
		l.add(moment{At: *r.FailedAt, Kind: "bad", Title: T("life.failed"),
			Detail: joined(why.Text, carrierWords(v, why.Carriers)), rank: 4})
	}
	if w := h.Waiting; w != nil {
		m := moment{Kind: "wait", Title: T("life.waiting", r.Carrier)}
		switch {
		case w.Claimed:
			m.Title = T("life.underway", r.Carrier)
		case w.Attempts == 0 && w.DueAt.After(postgres.Now()) && w.DueAt.Year() < 9999: // a held one has no time
			m.At, m.Title = w.DueAt, T("life.scheduled")
		case w.Attempts > 0 && w.DueAt.After(postgres.Now()):
			m.At, m.Detail = w.DueAt, []string{v.Lang.N("life.tries", w.Attempts)}
		}
		l.Ahead = append(l.Ahead, m)
	} else if !r.Status.Final() {
		l.Ahead = append(l.Ahead, moment{Kind: "wait", Title: T("life.receiptwait")})
	}
	for _, d := range deliveries {
		addDelivery(v, l, d)
	}
	slices.SortStableFunc(l.Moments, func(a, b moment) int {
		// The final state's time may come from the carrier: it is shown last.
		if c := a.place().Compare(b.place()); c != 0 && a.rank != 4 && b.rank != 4 {
			return c
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.At.Compare(b.At))
	})
	return l
}

// addDelivery adds a webhook delivery and its attempts.
func addDelivery(v *web.Visit, l *timeline, d webhooks.Delivery) {
	T, link := v.Lang.T, "/deliveries/of/"+strconv.FormatInt(d.ID, 10)
	for _, a := range d.Attempts {
		m := moment{At: a.At, Kind: "bad", Title: T("life.webhook", d.Event, a.Number), Link: link, rank: 5}
		took := T("life.took", a.DurationMS)
		switch {
		case a.Result == "2xx":
			m.Kind, m.Detail = "good", []string{T("life.answered", a.Status), took}
		case a.Status != 0:
			m.Detail = []string{T("life.answered", a.Status), took}
		default:
			m.Detail = joined(T("life.noanswer"), a.Error, took)
		}
		l.add(m)
	}
	switch {
	case d.State == webhooks.StatePending:
		m := moment{Kind: "wait", Title: T("life.webhookwait", d.Event), Link: link}
		if d.NextAt != nil && d.NextAt.After(postgres.Now()) {
			m.At = *d.NextAt
		}
		l.Ahead = append(l.Ahead, m)
		l.Live = true
	case d.State == webhooks.StateFailed && d.FinishedAt != nil:
		l.add(moment{At: *d.FinishedAt, Kind: "bad", Title: T("life.webhookfailed", d.Event), Link: link, rank: 6})
	}
}

func (l *timeline) add(m moment) { l.Moments = append(l.Moments, m) }

// errorOf returns a receipt's error code; empty if it is all zeros, which means no error.
func errorOf(code string) string {
	if strings.Trim(code, "0") == "" {
		return ""
	}
	return code
}

// joined returns the texts that are not empty.
func joined(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// whyFailed is why a message failed.
type whyFailed struct {
	Text     string // the reason, what to do, and whether it was charged
	Carriers string // the carrier's own words; "": the reason is ours
}

// failures returns why messages failed.
func (ps *Pages) failures(v *web.Visit, failed ...lookup.Record) ([]whyFailed, error) {
	refs, list := make([][16]byte, len(failed)), make([]whyFailed, len(failed))
	for i := range failed {
		refs[i] = failed[i].ULID
	}
	refunded, err := ps.Deps.Ledger.Refunded(v.Ctx(), refs)
	for i := range failed {
		list[i] = failure(v, &failed[i], refunded[failed[i].ULID])
	}
	return list, err
}

// carrierWords returns a carrier's own words as such; "" if there are none.
func carrierWords(v *web.Visit, parts ...string) string {
	if text := strings.Join(joined(parts...), " "); text != "" {
		return v.Lang.T("reason.words", text)
	}
	return ""
}

func failure(v *web.Visit, m *lookup.Record, refunded int64) (why whyFailed) {
	why.Text, why.Carriers = exports.Describe(v.Lang, m.FailureReason)
	charged := v.Lang.T("reason.refunded")
	switch left := int64(m.Segments) - refunded; {
	case m.Test || m.Carrier == sms.SandboxCarrier || m.CompanyID == 0:
		charged = v.Lang.T("reason.free")
	case left > 0:
		charged = v.Lang.N("reason.charged", left)
	}
	why.Text = strings.TrimSpace(why.Text + " " + charged)
	return why
}

func encoding(v *web.Visit, e sms.Encoding) string {
	if e == sms.UCS2 {
		return v.Lang.T("encoding.ucs")
	}
	return v.Lang.T("encoding.gsm")
}
