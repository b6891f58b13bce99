package receipts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Receipt is what a carrier reported of one segment.
type Receipt struct {
	Link      string
	CarrierID string  // as the receipt writes it
	Reference *uint16 // user_message_reference, where the carrier echoes it
	Number    string  // the handset, as the carrier writes it (source address)
	State     string  // DELIVRD, UNDELIV, ...
	Status    sms.Status
	Final     bool // whether State settles anything; Status counts only then
	Error     string
	At        time.Time
}

// Outcome says what became of a receipt. A closed set: it labels a metric.
type Outcome string

// Outcomes.
const (
	Matched       Outcome = "matched"       // it settled its segment
	Unmatched     Outcome = "unmatched"     // no such segment yet: kept in the inbox
	Duplicate     Outcome = "duplicate"     // says again what is known
	Contradiction Outcome = "contradiction" // says otherwise than the first: kept, not applied
	Intermediate  Outcome = "intermediate"  // settles nothing: kept
	Throttled     Outcome = "throttled"     // no such segment, and no room in the inbox: not kept
)

// reported is a receipt whose id is read in the format that its link is known to have.
type reported struct {
	Receipt
	key     string // of the segment that it names
	handset *int32 // nil: it names none
	verify  bool   // settle only a segment that went to the handset; else also any of the same link
	guess   bool   // the format is not known
}

// read reads the id of a receipt.
func (l *learner) read(r Receipt) reported {
	return reported{Receipt: r, key: receiptKey(l.format, r.CarrierID), handset: handset(r.Number), verify: !l.fixed, guess: l.format == Auto}
}

// reports are the receipts of one Record, on their way.
type reports struct {
	receipts          []reported
	outcomes          []Outcome
	whose             []int64 // of those that settled a segment: its message
	room              int     // in the inbox
	byID, byReference lookups
}

func (m *Matcher) newReports(receipts []Receipt, room int) *reports {
	r := &reports{receipts: make([]reported, len(receipts)), outcomes: make([]Outcome, len(receipts)), whose: make([]int64, len(receipts)), room: room}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range receipts {
		r.receipts[i] = m.of(receipts[i].Link).read(receipts[i])
		if receipts[i].Final {
			r.byID.add(i, &r.receipts[i], r.receipts[i].key, r.receipts[i].verify)
		}
	}
	return r
}

// finish goes on where no segment was found by its id: by the reference that a
// receipt echoes, or else into the inbox.
func (r *reports) finish(ctx context.Context, tx pgx.Tx, carrier string) error {
	r.note(r.byID.found)
	if err := r.settleNext(ctx, tx, carrier); err != nil {
		return err
	}
	for i := range r.receipts {
		one := &r.receipts[i]
		if one.Final && r.outcomes[i] == "" && one.Reference != nil && one.handset != nil && !r.byID.shared(i, one) {
			r.byReference.add(i, one, referenceKey(*one.Reference), true)
			r.byReference.add(i, one, namelessKey(*one.Reference), true)
		}
	}
	if err := r.byReference.settle(ctx, tx, carrier); err != nil {
		return err
	}
	r.note(r.byReference.found)
	return r.keepRest(ctx, tx, carrier)
}

// settleNext looks for the segments of receipts that name their segment as one
// before in the lot does. Mostly they only say the same again; but there are
// carriers that give all segments of a message one id.
func (r *reports) settleNext(ctx context.Context, tx pgx.Tx, carrier string) error {
	for {
		var next lookups
		for i := range r.receipts {
			if one := &r.receipts[i]; one.Final && r.outcomes[i] == "" && r.byID.shared(i, one) {
				next.add(i, one, one.key, one.verify)
			}
		}
		if err := next.settle(ctx, tx, carrier); err != nil {
			return err
		}
		r.note(next.found)
		if r.byID.found = append(r.byID.found, next.found...); len(next.found) == 0 {
			return nil
		}
	}
}

// note enters which receipts found their segment.
func (r *reports) note(found []match) {
	for _, f := range found {
		r.outcomes[f.receipt], r.whose[f.receipt] = Matched, f.MessageID
	}
}

// found are the segments that the receipts have settled, in the order of the receipts.
func (r *reports) found() []match {
	found := slices.Concat(r.byID.found, r.byReference.found)
	slices.SortFunc(found, func(a, b match) int { return cmp.Compare(a.receipt, b.receipt) })
	return found
}

// votes are what the matches say of how the links write ids. What was found by its
// reference says nothing of that, nor does an id that is the same in every format.
func (r *reports) votes(found []match) (votes []vote) {
	for _, f := range found {
		switch one := &r.receipts[f.receipt]; {
		case !one.verify || one.handset == nil || f.Unanswered:
		case !one.guess:
			votes = append(votes, vote{one.Link, Auto})
		case otherKeys(one.CarrierID) != nil:
			votes = append(votes, vote{one.Link, Same})
		}
	}
	return votes
}

// parked reports whether a receipt was kept that may name its segment in another
// format.
func (r *reports) parked() bool {
	for i := range r.receipts {
		if r.outcomes[i] == Unmatched && r.receipts[i].guess {
			return true
		}
	}
	return false
}

// match is a segment that a receipt has settled.
type match struct {
	receipt int // its index
	SegmentState
}

// lookups are final receipts by column, one a key: of several receipts for one
// segment the first counts.
type lookups struct {
	n                          []int32
	keys, words, errors, links []string
	handsets                   []*int32
	verify                     []bool
	status                     []int16
	at                         []time.Time
	first                      map[named]int
	found                      []match // segments settled
}

// named is what two receipts of one segment share. Two SMSCs of a carrier
// may give the same ids, so the key alone is not enough.
type named struct {
	key, link string
	handset   int32 // -1: none
}

func (r *reported) names(key string) named {
	if r.handset == nil {
		return named{key, r.Link, -1}
	}
	return named{key, r.Link, *r.handset}
}

func (l *lookups) add(i int, r *reported, key string, verify bool) {
	if key == "" {
		return
	}
	whose := r.names(key)
	if _, taken := l.first[whose]; taken {
		return
	}
	if l.first == nil {
		l.first = make(map[named]int)
	}
	l.first[whose] = i
	l.links, l.verify = append(l.links, r.Link), append(l.verify, verify)
	l.n, l.keys, l.words = append(l.n, int32(i)), append(l.keys, key), append(l.words, postgres.Text(r.State))
	l.status, l.errors, l.at = append(l.status, int16(r.Status)), append(l.errors, postgres.Text(r.Error)), append(l.at, r.At)
	l.handsets = append(l.handsets, r.handset)
}

// shared reports whether another receipt before i spoke of the same segment.
func (l *lookups) shared(i int, r *reported) bool {
	first, ok := l.first[r.names(r.key)]
	return ok && first != i
}

// queue adds to a pipeline what gives each undecided segment its first final
// receipt.
//
// Two SMSCs of a carrier may give the same ids: a receipt that names a handset
// means a segment that went there; where it need not be so (the configured format
// of ids is trusted: there are carriers that write another number), one of the
// receipt's own link, unless the id was given for that handset once: then it is
// told again of what is decided. A carrier that counts its ids anew has used a key before:
// the youngest undecided segment is meant. The carrier's lock makes the row's address (ctid) safe to name; that two receipts
// name one segment under different identities changes nothing: the first
// decides.
func (l *lookups) queue(b *pgx.Batch, carrier string) {
	if len(l.n) == 0 {
		return
	}
	b.Queue(`
		UPDATE segments s SET state = u.status, receipt = u.word, error = u.error, receipt_at = u.at
		FROM unnest($2::int[], $3::text[], $4::text[], $5::smallint[], $6::text[], $7::timestamptz[], $8::int[], $9::text[], $10::boolean[])
			u(n, key, word, status, error, at, handset, link, verify)
		CROSS JOIN LATERAL (
			SELECT c.ctid AS address FROM segments c
			WHERE c.key = u.key AND c.carrier = $1 AND c.state IS NULL
				AND (u.handset IS NULL OR c.handset = u.handset OR (NOT u.verify AND c.link = u.link AND NOT EXISTS (
					SELECT FROM segments d WHERE d.key = u.key AND d.carrier = $1 AND d.handset = u.handset)))
			ORDER BY coalesce(c.handset = u.handset, false) DESC, c.link = u.link DESC, c.submitted_at DESC LIMIT 1
		) youngest
		WHERE s.ctid = youngest.address
		RETURNING u.n, s.message_id, s.segment, s.total, s.state, s.receipt, s.error, s.receipt_at, `+unansweredKey,
		carrier, l.n, l.keys, l.words, l.status, l.errors, l.at, l.handsets, l.links, l.verify).
		Query(func(rows pgx.Rows) (err error) {
			l.found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f match, err error) {
				err = row.Scan(&f.receipt, &f.MessageID, &f.Segment, &f.Total, &f.Status, &f.Receipt, &f.Error, &f.At, &f.Unanswered)
				return f, err
			})
			if err != nil {
				return fmt.Errorf("settling segments by %d receipts: %w", len(l.n), err)
			}
			return nil
		})
}

// settle does what queue does, at once.
func (l *lookups) settle(ctx context.Context, tx pgx.Tx, carrier string) error {
	b := &pgx.Batch{}
	if l.queue(b, carrier); b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, b).Close()
}
