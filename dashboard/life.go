package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"intumwa/messages"
	"intumwa/sms"
	"intumwa/submission"
	"intumwa/webhooks"
)

// life is a message with everything that happened to it.
type life struct {
	messages.Record
	Moments []moment // in the order in which they happened
	Ahead   []moment // what is still to come, with the time where it is known
	Live    bool     // there is more to come soon: the page looks again
}

// Unicode says that the text is carried as UCS-2.
func (l *life) Unicode() bool { return l.Encoding == sms.UCS2 }

// moment is one entry of a timeline, in the person's language.
type moment struct {
	At     time.Time // zero: not known
	Kind   string    // of the badge: good, bad, wait, off
	Title  string
	Detail []string
	rank   int       // among what happened at the same time
	after  time.Time // it stands after what happened then, whatever its own clock said
}

// Clock is the time of day to the millisecond, by which a message's life is told.
func (m moment) Clock() string { return m.At.In(bujumbura).Format("15:04:05.000") }

// place is where it stands: a receipt may come before the answer that it belongs to, but follows from the same submit.
func (m moment) place() time.Time {
	if m.At.Before(m.after) {
		return m.after
	}
	return m.At
}

// life reads what became of a message.
func (v *visit) life(t tenant, r messages.Record) (*life, error) {
	history, err := v.d.rooms.Messages.HistoryOf(v.ctx(), r.ID)
	if err != nil {
		return nil, err
	}
	deliveries, _, err := v.d.rooms.Webhooks.Deliveries(v.ctx(), t.company(), webhooks.Filter{MessageID: r.ID}, 0, 2)
	if err != nil {
		return nil, err
	}
	return v.tell(r, history, deliveries), nil
}

func (v *visit) tell(r messages.Record, h messages.History, deliveries []webhooks.Delivery) *life {
	T, l := v.lang.T, &life{Record: r, Live: !r.Status.Final()}
	l.add(moment{At: r.CreatedAt, Kind: "good", Title: T("life.accepted"), rank: 0,
		Detail: []string{v.lang.Count("life.segments", r.Segments) + " · " + v.encoding(r.Encoding)}})
	l.add(moment{At: r.CreatedAt, Kind: "good", Title: T("life.queued"), Detail: []string{T("life.carrier", r.Carrier)}, rank: 1})
	for _, s := range h.Segments {
		detail := []string{T("life.link", s.Link)}
		if s.CarrierID != "" {
			detail = append(detail, T("life.carrierid", s.CarrierID))
		} else {
			detail = append(detail, T("life.unanswered"))
		}
		l.add(moment{At: s.SubmittedAt, Kind: "good", Title: T("life.submitted", s.Segment, r.Segments), Detail: detail, rank: 2})
		if s.ReceiptAt != nil && s.Receipt != "" {
			kind := "good"
			if r.Status == sms.Failed {
				kind = "off"
			}
			l.add(moment{At: *s.ReceiptAt, Kind: kind, Title: T("life.receipt", s.Segment), Detail: joined(s.Receipt, errorOf(s.Error)), rank: 3, after: s.SubmittedAt})
		}
	}
	for _, k := range h.Receipts {
		l.add(moment{At: k.At, Kind: "off", Title: T("life.otherreceipt"), Detail: joined(k.State, errorOf(k.Error)), rank: 3})
	}
	if r.SentAt != nil {
		l.add(moment{At: *r.SentAt, Kind: "good", Title: T("life.sent"), rank: 4})
	}
	if r.FailedAt != nil {
		m := moment{At: *r.FailedAt, Kind: "bad", Title: T("life.failed"), rank: 4}
		if reason := v.reason(r.FailureReason); reason != "" {
			m.Detail = []string{reason}
		}
		l.add(m)
	}
	if w := h.Waiting; w != nil {
		m := moment{Kind: "wait", Title: T("life.waiting", r.Carrier)}
		switch {
		case w.Claimed:
			m.Title = T("life.underway", r.Carrier)
		case w.Attempts > 0 && w.DueAt.After(time.Now()):
			m.At, m.Detail = w.DueAt, []string{v.lang.Count("life.tries", w.Attempts)}
		}
		l.Ahead = append(l.Ahead, m)
	} else if !r.Status.Final() {
		l.Ahead = append(l.Ahead, moment{Kind: "wait", Title: T("life.receiptwait")})
	}
	for _, d := range deliveries {
		v.tellDelivery(l, d)
	}
	slices.SortStableFunc(l.Moments, func(a, b moment) int {
		// The time of the end may be the carrier's word: it stands after what led to it.
		if c := a.place().Compare(b.place()); c != 0 && a.rank != 4 && b.rank != 4 {
			return c
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.At.Compare(b.At))
	})
	return l
}

// tellDelivery tells of one webhook and its attempts.
func (v *visit) tellDelivery(l *life, d webhooks.Delivery) {
	T := v.lang.T
	for _, a := range d.Attempts {
		m := moment{At: a.At, Kind: "bad", Title: T("life.webhook", d.Event, a.Number), rank: 5}
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
		m := moment{Kind: "wait", Title: T("life.webhookwait", d.Event)}
		if d.NextAt != nil && d.NextAt.After(time.Now()) {
			m.At = *d.NextAt
		}
		l.Ahead = append(l.Ahead, m)
		l.Live = true
	case d.State == webhooks.StateFailed && d.FinishedAt != nil:
		l.add(moment{At: *d.FinishedAt, Kind: "bad", Title: T("life.webhookfailed", d.Event), rank: 6})
	}
}

func (l *life) add(m moment) { l.Moments = append(l.Moments, m) }

// errorOf is a receipt's error code; carriers write zeros where there is none.
func errorOf(code string) string {
	if strings.Trim(code, "0") == "" {
		return ""
	}
	return code
}

// joined are the texts that say anything.
func joined(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// reason says why a message failed: our own words in the person's language, a carrier's as they are.
func (v *visit) reason(r string) string {
	switch r {
	case submission.ReasonExpired:
		return v.lang.T("life.expired")
	case submission.ReasonNoReceipt:
		return v.lang.T("life.noreceipt")
	case submission.ReasonNoAnswer:
		return v.lang.T("life.unanswered")
	}
	return r
}

func (v *visit) encoding(e sms.Encoding) string {
	if e == sms.UCS2 {
		return v.lang.T("encoding.ucs")
	}
	return v.lang.T("encoding.gsm")
}
