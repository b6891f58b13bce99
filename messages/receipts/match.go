package receipts

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// matching decides which receipts settle which segments: rows.go reads what it looks
// at, and stores what it has decided. It does no I/O.
type matching struct {
	carrier string
	format  Format
	fresh   []*row            // the segments to be recorded
	late    []*row            // of these, answers that came late
	copies  map[int64][]*row  // of the messages of late answers: all that is recorded
	byKey   map[string][]*row // fresh ones, and what is recorded under the keys of the receipts
	known   map[string]*row   // what is recorded, by address
	early   []waiting         // receipts of the inbox that may be ahead of fresh ones, by id
	reports []reported        // the receipts that came, in their order
	told    map[teller]bool   // who has reported so far

	room     int // for so many receipts that no segment is found for
	outcomes []Outcome
	named    []*row // the segment of each receipt, as far as one is found
	settled  []*row
	byEarly  int // of these, how many by a receipt of the inbox
	taken    []int64
}

// teller is what two receipts of one segment share. Two SMSCs of a carrier may give the
// same ids, so the key alone is not enough.
type teller struct {
	key, link string
	handset   int32
}

// row is a copy of a segment: one that is recorded, or one that will be.
type row struct {
	SegmentState
	handset   *int32 // nil: unknown
	link, key string
	submitted time.Time
	address   string // of a recorded one: its ctid
	replaced  bool   // by an answer that came late: it goes
	confirmed bool   // its acceptance was all that the carrier says

	// Of a fresh one.
	carrierID string
	reference *int32 // by which a receipt of the inbox may name it
	unsure    bool   // only a receipt that names its handset can have been ahead
}

// waiting is a final receipt in the inbox.
type waiting struct {
	id    int64
	taken bool // it has found its segment
	reported
}

func (m *Matcher) newMatching(segments []Segment, receipts []Receipt, room int) *matching {
	w := &matching{carrier: m.carrier, format: m.format, copies: map[int64][]*row{}, byKey: map[string][]*row{}, known: map[string]*row{},
		told: map[teller]bool{}, room: room, outcomes: make([]Outcome, len(receipts)), named: make([]*row, len(receipts))}
	for i := range segments {
		p := &segments[i]
		r := &row{SegmentState: SegmentState{MessageID: p.MessageID, Segment: p.Segment, Total: p.Total, Unanswered: p.Unanswered},
			handset: handset(string(p.Number)), link: p.Link, key: p.key(), submitted: p.At, confirmed: p.Confirmed && !p.Unanswered}
		if p.Unanswered || r.key == namelessKey(p.Reference) {
			reference := int32(p.Reference)
			r.reference = &reference
		}
		if !p.Unanswered {
			r.carrierID = postgres.Text(p.CarrierID)
		}
		r.unsure = p.Unanswered || m.format == Auto
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

// match decides all.
func (w *matching) match() {
	w.replace()
	w.matchEarly()
	for i := range w.reports {
		w.matchReport(i)
	}
}

// replace has each late answer take the place of the oldest copy of its segment that has
// none. It takes over the handset of its message.
func (w *matching) replace() {
	for _, late := range w.late {
		var oldest *row
		for _, r := range slices.Concat(w.copies[late.MessageID], w.fresh) {
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

// same reports whether a receipt names the handset that a row went to.
func (r *row) same(handset *int32) bool {
	return r.handset != nil && handset != nil && *r.handset == *handset
}

// matchEarly settles fresh rows by receipts of the inbox: by the id, and then by the
// reference. A receipt is taken for one message; all its fresh segments that have the id
// take its state. A receipt of a segment that another one of the inbox has settled is taken
// too: it repeats what is known, and would else settle a later segment that has the same id.
func (w *matching) matchEarly() {
	for i := range w.early {
		w.matchEarlyID(&w.early[i])
	}
	for _, r := range w.fresh {
		for i := range w.early {
			e := &w.early[i]
			if !e.taken && r.open() && r.same(e.handset) && r.reference != nil && e.reference != nil && *e.reference == *r.reference {
				w.take(e)
				w.settleEarly(r, e)
			}
		}
	}
}

func (w *matching) matchEarlyID(e *waiting) {
	for _, key := range e.keys {
		best := e.best(w.byKey[key], func(r *row) bool {
			return key != "" && r.address == "" && !r.confirmed && !r.replaced &&
				(!r.unsure && r.link == e.Link || e.handset == nil && !strings.ContainsAny(r.key[:1], "?!") || r.same(e.handset))
		})
		if best == nil {
			continue
		}
		w.take(e)
		for _, r := range w.byKey[key] {
			if r.address == "" && r.MessageID == best.MessageID && r.open() {
				w.settleEarly(r, e)
			}
		}
		return
	}
}

func (w *matching) take(e *waiting) {
	e.taken = true
	w.taken = append(w.taken, e.id)
}

func (w *matching) settleEarly(r *row, e *waiting) {
	r.settle(&e.reported)
	w.settled, w.byEarly = append(w.settled, r), w.byEarly+1
}

func (r *row) settle(by *reported) {
	r.Status, r.Receipt, r.Error, r.At = by.Status, postgres.Text(by.State), postgres.Text(by.Error), by.At
}

// best returns the row of those that fit that a receipt means: its handset's, before one of
// its own link, before the youngest.
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
		if fits(one) && (best == nil || cmp.Or(cmp.Compare(rank(one), rank(best)), one.submitted.Compare(best.submitted)) > 0) {
			best = one
		}
	}
	return best
}

// matchReport finds the segment of one receipt that came, or says why it settles none.
func (w *matching) matchReport(i int) {
	one := &w.reports[i]
	if one.Final {
		var again bool // it repeats another of the same lot
		if one.keys[0] != "" && one.handset != nil {
			t := teller{one.keys[0], one.Link, *one.handset}
			again, w.told[t] = w.told[t], true
		}
		if r := w.byID(one); r != nil {
			w.settleBy(i, r)
			return
		}
		if r := w.byReference(one); r != nil && !again {
			w.settleBy(i, r)
			return
		}
	}
	named := w.tells(one)
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
		w.outcomes[i] = Duplicate // counted, not kept: carriers send them by the dozen
	}
}

func (w *matching) settleBy(i int, r *row) {
	r.settle(&w.reports[i])
	w.outcomes[i], w.named[i], w.settled = Matched, r, append(w.settled, r)
}

// byID returns the open row that a receipt names by its id: the first form of the id that
// was given for its handset decides. Where it need not be one that went to its handset,
// another of its link is meant only if the id was never given for that handset: else it
// tells again what is known.
func (w *matching) byID(one *reported) *row {
	for _, key := range one.keys {
		rows := w.byKey[key]
		given := slices.ContainsFunc(rows, func(r *row) bool { return r.same(one.handset) })
		best := one.best(rows, func(r *row) bool {
			return key != "" && r.open() && (one.handset == nil || r.same(one.handset) || !one.verify && !given && r.link == one.Link)
		})
		if best != nil || given {
			return best
		}
	}
	return nil
}

// tells returns the row, open or not, that a receipt names by its id.
func (w *matching) tells(one *reported) *row {
	for _, key := range one.keys {
		if best := one.best(w.byKey[key], func(r *row) bool {
			return key != "" && !r.replaced && (one.handset == nil || r.same(one.handset) || !one.verify && r.link == one.Link)
		}); best != nil {
			return best
		}
	}
	return nil
}

// byReference returns the open row that a receipt names by the reference that it echoes.
func (w *matching) byReference(one *reported) *row {
	if one.Reference == nil || one.handset == nil {
		return nil
	}
	rows := slices.Concat(w.byKey[referenceKey(*one.Reference)], w.byKey[namelessKey(*one.Reference)])
	return one.best(rows, func(r *row) bool { return r.open() && r.same(one.handset) })
}
