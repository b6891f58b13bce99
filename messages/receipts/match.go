package receipts

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// matching decides which receipts settle which segments, without I/O: rows.go loads its input and stores its decisions.
type matching struct {
	carrier string
	format  Format
	fresh   []*row            // the segments to record
	late    []*row            // of these, late answers
	byKey   map[string][]*row // fresh rows, and recorded rows under the keys of the receipts
	known   map[string]*row   // recorded rows, by address: all of late answers' messages, and those that receipts may name
	early   []waiting         // receipts of the inbox that may have come before fresh rows, by id
	reports []reported        // the new receipts, in their order
	seen    map[source]bool   // of earlier receipts

	room     int // for how many receipts without a segment
	outcomes []Outcome
	named    []*row // the segment of each receipt, if one is found
	settled  []*row
	byEarly  int // of these, by a receipt of the inbox
}

// source identifies the receipts of one segment. Two SMSCs of a carrier may use the same ids: the key alone is not
// enough.
type source struct {
	key, link string
	handset   int32
}

// row is a submit record of a segment, stored or to be stored.
type row struct {
	SegmentState
	handset   *int32 // nil: unknown
	link, key string
	submitted time.Time
	address   string // ctid of a recorded row
	replaced  bool   // a late answer replaces it
	confirmed bool   // its acceptance is final: the carrier sends no receipts

	// Only of a fresh row.
	carrierID string
	reference *uint16 // by which a receipt of the inbox may name it
}

// waiting is a final receipt in the inbox.
type waiting struct {
	id    int64
	taken bool // it has its segment
	reported
}

func (m *Matcher) newMatching(segments []Segment, receipts []Receipt, room int) *matching {
	fresh := make([]row, len(segments))
	w := &matching{
		carrier: m.carrier, format: m.format, room: room,
		byKey: make(map[string][]*row, len(segments)), known: map[string]*row{}, seen: map[source]bool{},
		outcomes: make([]Outcome, len(receipts)), named: make([]*row, len(receipts)),
		reports: make([]reported, 0, len(receipts)),
		fresh:   make([]*row, 0, len(segments)), settled: make([]*row, 0, len(segments)+len(receipts)),
	}
	for i := range segments {
		p, r := &segments[i], &fresh[i]
		*r = row{SegmentState: SegmentState{MessageID: p.MessageID, Segment: p.Segment, Total: p.Total,
			Unanswered: p.Unanswered},
			handset: handset(string(p.Number)), link: p.Link, key: p.key(), submitted: p.At, confirmed: p.Confirmed &&
				!p.Unanswered}
		if p.Unanswered || p.nameless() {
			r.reference = &p.Reference
		}
		if !p.Unanswered {
			r.carrierID = postgres.Text(p.CarrierID)
		}
		if r.confirmed {
			r.Status, r.At = sms.Sent, p.At
			w.settled = append(w.settled, r)
		}
		if p.Late && !p.Unanswered {
			w.late = append(w.late, r)
		}
		w.fresh = append(w.fresh, r)
		w.add(r)
	}
	for _, r := range receipts {
		w.reports = append(w.reports, m.format.read(r))
	}
	return w
}

func (w *matching) add(r *row) { w.byKey[r.key] = append(w.byKey[r.key], r) }

// match matches the late answers, the inbox and the new receipts, in this order.
func (w *matching) match() {
	w.replace()
	w.matchEarly()
	for i := range w.reports {
		w.matchReport(i)
	}
}

// replace gives each late answer the place, and the handset, of its segment's oldest unanswered submit record.
func (w *matching) replace() {
	for _, late := range w.late {
		var oldest *row
		for _, r := range slices.AppendSeq(slices.Clone(w.fresh), maps.Values(w.known)) {
			if r.MessageID != late.MessageID {
				continue
			}
			late.handset = cmp.Or(late.handset, r.handset)
			if r.Segment == late.Segment && r.Unanswered && r.open() && (oldest == nil || r.submitted.Before(oldest.submitted)) {
				oldest = r
			}
		}
		if oldest != nil {
			oldest.replaced = true
		}
	}
}

// open reports whether a receipt can settle a row.
func (r *row) open() bool { return r.Status == sms.Pending && !r.replaced }

// same reports whether a receipt names a row's handset.
func (r *row) same(handset *int32) bool {
	return r.handset != nil && handset != nil && *r.handset == *handset
}

// matchEarly settles fresh rows by receipts of the inbox: by id, then by reference. A receipt settles one message: all
// its fresh segments with the id. A receipt of a segment that another one has settled is used up too: it is a
// repetition, and would otherwise settle a later segment with the same id.
func (w *matching) matchEarly() {
	for i := range w.early {
		w.matchEarlyID(&w.early[i])
	}
	for _, r := range w.fresh {
		for i := range w.early {
			e := &w.early[i]
			if !e.taken && r.open() && r.same(e.handset) && r.reference != nil && e.Reference != nil &&
				*e.Reference == *r.reference {
				w.settleEarly(r, e)
			}
		}
	}
}

func (w *matching) matchEarlyID(e *waiting) {
	for _, key := range e.keys {
		best := e.best(w.byKey[key], func(r *row) bool {
			return key != "" && r.address == "" && !r.confirmed && !r.replaced &&
				(!r.Unanswered && !e.verify && r.link == e.Link || e.handset == nil && !strings.ContainsAny(r.key[:1], "?!") ||
					r.same(e.handset))
		})
		if best == nil {
			continue
		}
		e.taken = true
		for _, r := range w.byKey[key] {
			if r.address == "" && r.MessageID == best.MessageID && r.open() {
				w.settleEarly(r, e)
			}
		}
		return
	}
}

func (w *matching) settleEarly(r *row, e *waiting) {
	e.taken = true
	r.settle(&e.reported)
	w.settled, w.byEarly = append(w.settled, r), w.byEarly+1
}

func (r *row) settle(by *reported) {
	r.Status, r.Receipt, r.Error, r.At = by.Status, postgres.Text(by.State), postgres.Text(by.Error), by.At
}

// best returns the row that a receipt means, of those that fit: its handset's, before one of its own link, before the
// youngest.
func (r *reported) best(rows []*row, fits func(*row) bool) (best *row) {
	rank := func(a *row) int {
		n := 0
		if a.same(r.handset) {
			n = 2
		}
		if a.link == r.Link {
			n++
		}
		return n
	}
	for _, one := range rows {
		if fits(one) && (best == nil || cmp.Or(cmp.Compare(rank(one), rank(best)),
			one.submitted.Compare(best.submitted)) > 0) {
			best = one
		}
	}
	return best
}

// matchReport finds the segment of a new receipt, or the reason why it settles none.
func (w *matching) matchReport(i int) {
	one := &w.reports[i]
	if one.Final {
		var again bool // a repetition within this batch
		if one.keys[0] != "" && one.handset != nil {
			t := source{one.keys[0], one.Link, *one.handset}
			again, w.seen[t] = w.seen[t], true
		}
		r := w.byID(one)
		if r == nil && !again && one.Trust == Marked {
			r = w.byReference(one)
		}
		if r != nil {
			r.settle(one)
			w.outcomes[i], w.named[i], w.settled = Matched, r, append(w.settled, r)
			return
		}
	}
	var named *row
	if one.Trust != Aside {
		named = w.find(one)
	}
	w.named[i] = named
	switch {
	case named == nil && w.room <= 0:
		w.outcomes[i] = Throttled
	case named == nil:
		w.outcomes[i] = Unmatched
		w.room--
	case !one.Final:
		w.outcomes[i] = Intermediate
	case named.Status != sms.Pending && named.Status != one.Status:
		w.outcomes[i] = Contradiction
	default:
		w.outcomes[i] = Duplicate // counted, not stored: carriers send them by the dozen
	}
}

// byID returns the open row that a receipt names by its id, in the first form that was given for its handset. Where the
// handset need not agree, it returns a row of the receipt's link only if the id was never given for the handset:
// otherwise the receipt is a repetition.
func (w *matching) byID(one *reported) *row {
	for _, key := range one.keys {
		rows := w.byKey[key]
		given := slices.ContainsFunc(rows, func(r *row) bool { return r.same(one.handset) })
		best := one.best(rows, func(r *row) bool {
			return key != "" && r.open() && (one.handset == nil || r.same(one.handset) || !one.verify && !given &&
				r.link == one.Link)
		})
		if best != nil || given {
			return best
		}
	}
	return nil
}

// find returns the row, open or not, that a receipt names by its id.
func (w *matching) find(one *reported) *row {
	for _, key := range one.keys {
		if best := one.best(w.byKey[key], func(r *row) bool {
			return key != "" && !r.replaced && (one.handset == nil || r.same(one.handset) || !one.verify && r.link == one.Link)
		}); best != nil {
			return best
		}
	}
	return nil
}

// byReference returns the open row that a receipt names by its echoed reference.
func (w *matching) byReference(one *reported) *row {
	if one.Reference == nil || one.handset == nil {
		return nil
	}
	rows := slices.Concat(w.byKey[referenceKey(*one.Reference)], w.byKey[namelessKey(*one.Reference)])
	return one.best(rows, func(r *row) bool { return r.open() && r.same(one.handset) })
}
