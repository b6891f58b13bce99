package receipts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// Segment is one that a carrier accepted (submit_sm_resp with status 0), or may
// have (Unanswered).
type Segment struct {
	MessageID int64
	Segment   int // from 1
	Total     int
	Number    sms.Number // of its message; "" of one that is Late will do
	Link      string
	CarrierID string // message_id of the submit_sm_resp, as it came
	At        time.Time
	Confirmed bool // the acceptance itself confirms: carrier with confirm: submit

	// Unanswered is a segment that was written and never answered: a carrier
	// may have it. It has no id; a receipt that echoes its Reference
	// (user_message_reference) can still settle it, as it can one that was
	// accepted without an id. 0: none was sent.
	Unanswered bool
	Reference  uint16

	// Late says that the answer came after the segment had been recorded as
	// Unanswered: it takes that one's place. Of several copies without an answer
	// it takes one's: of the others the carrier has said nothing yet.
	Late bool
}

// referenceKey is the key of an unanswered segment, namelessKey of one that was
// accepted without an id. Should a carrier's ids look like them, little is lost:
// a match by a reference is made only with the handset's number beside it.
func referenceKey(reference uint16) string { return "?" + strconv.Itoa(int(reference)) }

func namelessKey(reference uint16) string { return "!" + strconv.Itoa(int(reference)) }

// key is the key under which a segment is stored.
func (p *Segment) key() string {
	switch key := Key(p.CarrierID); {
	case p.Unanswered:
		return referenceKey(p.Reference)
	case key == "" && p.Reference != 0:
		return namelessKey(p.Reference)
	default:
		return key
	}
}

// SegmentState is a segment that reached a final state just now.
type SegmentState struct {
	MessageID int64
	Segment   int
	Total     int
	Status    sms.Status
	Receipt   string // the carrier's word, "" when its acceptance was enough
	Error     string
	At        time.Time

	// Unanswered: the receipt settled a segment whose answer never came. The
	// message may still stand in the outbox, to be sent again.
	Unanswered bool
}

// Copy is the segment as its message's verdict sees it.
func (s *SegmentState) Copy() submission.Copy {
	return submission.Copy{Segment: s.Segment, Answered: !s.Unanswered, Status: s.Status, At: s.At, Reason: reasonOf(s.Receipt, s.Error)}
}

// reasonOf is why a segment failed, in the carrier's words.
func reasonOf(receipt, code string) string {
	if code == "" {
		return receipt
	}
	return receipt + " " + code
}

// Conditions on a row s of segments.
const (
	unansweredKey = `s.key LIKE '?%'`     // its answer never came
	answeredKey   = `s.key NOT LIKE '?%'` // it came
)

// deleteUnanswered deletes, for each segment in late (message_id, segment, answers), as many
// of a carrier's copies without an answer as have theirs now. Whoever calls holds the lock of
// the carrier, which makes a row's address (ctid) safe to name.
func deleteUnanswered(carrier, late string) string {
	return `DELETE FROM segments s USING (` + late + `) l CROSS JOIN LATERAL (
				SELECT s.ctid AS address FROM segments s
				WHERE s.message_id = l.message_id AND s.segment = l.segment AND s.carrier = ` + carrier + ` AND ` + unansweredKey + ` AND s.state IS NULL
				ORDER BY s.submitted_at LIMIT l.answers
			) one WHERE s.ctid = one.address`
}

// Written reports whether one of segments is recorded exactly so: then the transaction that
// recorded it was committed, and everything else that it wrote. It is for the repetition of a
// transaction whose COMMIT was not answered; the caller holds the lock ([Matcher.Lock]).
func (m *Matcher) Written(ctx context.Context, tx pgx.Tx, segments []Segment) (written bool, err error) {
	n := len(segments)
	ids, numbers, links, keys, at := make([]int64, n), make([]int16, n), make([]string, n), make([]string, n), make([]time.Time, n)
	for i := range segments {
		p := &segments[i]
		ids[i], numbers[i], links[i], keys[i], at[i] = p.MessageID, int16(p.Segment), p.Link, p.key(), p.At
	}
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM unnest($2::bigint[], $3::smallint[], $4::text[], $5::text[], $6::timestamptz[]) u(message_id, segment, link, key, at)
			JOIN segments s USING (message_id, segment, link, key) WHERE s.carrier = $1 AND s.submitted_at = u.at)`,
		m.carrier, ids, numbers, links, keys, at).Scan(&written); err != nil {
		return false, fmt.Errorf("looking whether %d segments are recorded: %w", n, err)
	}
	return written, nil
}

// recording is the writing of segments, on its way in a pipeline, and the receipts of
// the inbox that are theirs.
type recording struct {
	carrier  string
	segments []recorded
	settled  []SegmentState // by their acceptance, or by a receipt that was ahead of it
	early    int            // of these, by a receipt
	votes    []vote
}

// recorded is a segment on its way into its row.
type recorded struct {
	Segment
	key     string
	handset *int32   // nil: it is that of the message's other rows
	unsure  bool     // only a receipt that names its handset can have been ahead
	other   []string // its keys in the other formats, if receipts in them are to be looked for
	done    bool     // it is among settled
}

// replaced returns segments without those unanswered ones whose late answers are among
// them: these take over the number.
func replaced(segments []Segment) []Segment {
	if !slices.ContainsFunc(segments, func(p Segment) bool { return p.Late }) {
		return segments
	}
	segments = slices.Clone(segments)
	for i := range segments {
		p := &segments[i]
		for k := 0; k < len(segments) && p.Late && !p.Unanswered; k++ {
			if u := &segments[k]; u.Unanswered && u.MessageID == p.MessageID && u.Segment == p.Segment && u.Link == p.Link {
				p.Late, p.Number = false, u.Number
				*u = Segment{}
			}
		}
	}
	return slices.DeleteFunc(segments, func(p Segment) bool { return p.MessageID == 0 })
}

func (m *Matcher) newRecording(segments []Segment) *recording {
	segments = replaced(segments)
	r := &recording{carrier: m.carrier, segments: make([]recorded, len(segments))}
	m.mu.Lock()
	defer m.mu.Unlock()
	waits := time.Since(m.parked) < inboxReach
	for i, p := range segments {
		one := recorded{Segment: p, key: p.key(), handset: handset(string(p.Number)), unsure: p.Unanswered}
		if !p.Unanswered && !m.of(p.Link).fixed {
			if one.unsure = true; waits {
				one.other = otherKeys(p.CarrierID)
			}
		}
		if p.Confirmed && !p.Unanswered {
			one.done = true
			r.settled = append(r.settled, SegmentState{MessageID: p.MessageID, Segment: p.Segment, Total: p.Total, Status: sms.Sent, At: p.At})
		}
		r.segments[i] = one
	}
	return r
}

// handsetOf is the handset of a row u, if need be by what is recorded of its message.
const handsetOf = `coalesce(u.handset, (SELECT s.handset FROM segments s WHERE s.message_id = u.message_id AND s.handset IS NOT NULL LIMIT 1))`

// queue adds the recording to a pipeline.
func (r *recording) queue(b *pgx.Batch) {
	n := len(r.segments)
	if n == 0 {
		return
	}
	var (
		index           = make([]int32, n)
		ids             = make([]int64, n)
		numbers, totals = make([]int16, n), make([]int16, n)
		handsets        = make([]*int32, n)
		links, keys     = make([]string, n), make([]string, n)
		raw             = make([]*string, n)
		at              = make([]time.Time, n)
		states          = make([]*int16, n)
		unsure, late    = make([]bool, n), make([]bool, n)
	)
	sent := int16(sms.Sent)
	for i, p := range r.segments {
		index[i], ids[i], numbers[i], totals[i], links[i], at[i] = int32(i), p.MessageID, int16(p.Segment.Segment), int16(p.Total), p.Link, p.At
		keys[i], handsets[i], unsure[i], late[i] = p.key, p.handset, p.unsure, p.Late && !p.Unanswered
		if id := postgres.Text(p.CarrierID); !p.Unanswered && id != "" && id != p.key {
			raw[i] = &id
		}
		if p.done {
			states[i] = &sent
		}
	}
	// Every answer that a carrier confirms by receipt may have its receipt in the
	// inbox. The segment takes over its state as it is written. A receipt is taken
	// for one message; all of its segments that have the id take it over.
	b.Queue(`
		WITH input AS (
			SELECT u.n, u.message_id, u.segment, u.total, `+handsetOf+` AS handset, u.link, u.key, u.raw, u.at, u.state, u.unsure, u.late
			FROM unnest($2::int[], $3::bigint[], $4::smallint[], $5::smallint[], $6::int[], $7::text[], $8::text[], $9::text[],
				$10::timestamptz[], $11::smallint[], $12::boolean[], $13::boolean[])
				u(n, message_id, segment, total, handset, link, key, raw, at, state, unsure, late)
		), found AS (
			SELECT DISTINCT ON (r.id) r.id, i.message_id
			FROM input i JOIN receipts r ON r.key = i.key AND r.carrier = $1
			WHERE r.message_id IS NULL AND i.key <> '' AND i.state IS NULL
				AND r.status IS NOT NULL AND r.received_at > now() - $14::interval
				AND ((NOT i.unsure AND r.link = i.link) OR (r.handset IS NULL AND i.key !~ '^[?!]') OR r.handset = i.handset)
			ORDER BY r.id, coalesce(r.handset = i.handset, false) DESC, r.link = i.link DESC, i.at DESC
		), early AS (
			DELETE FROM receipts r USING found f WHERE r.id = f.id
			RETURNING r.id, f.message_id, r.key, r.status, r.state, r.error, r.received_at
		), first AS (
			SELECT DISTINCT ON (message_id, key) * FROM early ORDER BY message_id, key, id
		), replaced AS (
			`+deleteUnanswered("$1", `SELECT message_id, segment, count(*) AS answers FROM input WHERE late GROUP BY message_id, segment`)+`
		), written AS (
			INSERT INTO segments (message_id, segment, total, handset, carrier, link, key, carrier_id, submitted_at, state, receipt, error, receipt_at)
			SELECT i.message_id, i.segment, i.total, i.handset, $1, i.link, i.key, i.raw, i.at, coalesce(i.state, f.status), f.state, f.error, f.received_at
			FROM input i LEFT JOIN first f USING (message_id, key)
		)
		SELECT i.n, 0, f.status, f.state, f.error, f.received_at FROM input i JOIN first f USING (message_id, key)`,
		r.carrier, index, ids, numbers, totals, handsets, links, keys, raw, at, states, unsure, late, inboxReach).
		Query(r.note)
}

// note takes in which segments a receipt of the inbox has settled: by their index,
// and the format in which it had the id, as an index of known.
func (r *recording) note(rows pgx.Rows) error {
	var n, format int
	var st SegmentState
	_, err := pgx.ForEachRow(rows, []any{&n, &format, &st.Status, &st.Receipt, &st.Error, &st.At}, func() error {
		p := &r.segments[n]
		p.done = true
		st.MessageID, st.Segment, st.Total, st.Unanswered = p.MessageID, p.Segment.Segment, p.Total, p.Unanswered
		r.settled = append(r.settled, st)
		r.early++
		if p.other != nil {
			r.votes = append(r.votes, vote{p.Link, known[format]})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("recording %d segments: %w", len(r.segments), err)
	}
	return nil
}

// otherwise settles segments just recorded by receipts of the inbox that name
// them otherwise than by their id: in another format of it, or, where there is
// none, by their user_message_reference; and always by their handset.
func (r *recording) otherwise(ctx context.Context, tx pgx.Tx) error {
	var (
		index                []int32
		ids                  []int64
		numbers, formats     []int16
		references, handsets []*int32
		keys, names          []string
	)
	for i := range r.segments {
		p := &r.segments[i]
		if p.done {
			continue
		}
		add := func(name string, reference *int32, format int) {
			index, ids, numbers, formats = append(index, int32(i)), append(ids, p.MessageID), append(numbers, int16(p.Segment.Segment)), append(formats, int16(format))
			handsets, keys, names, references = append(handsets, p.handset), append(keys, p.key), append(names, name), append(references, reference)
		}
		if p.Unanswered || p.key == namelessKey(p.Reference) {
			reference := int32(p.Reference)
			add("", &reference, 0)
			continue
		}
		for format, name := range p.other {
			if name != "" {
				add(name, nil, format+1)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
		WITH input AS (
			SELECT u.n, u.message_id, u.segment, `+handsetOf+` AS handset, u.key, u.name, u.reference, u.format
			FROM unnest($2::int[], $3::bigint[], $4::smallint[], $5::int[], $6::text[], $7::text[], $8::int[], $9::smallint[])
				u(n, message_id, segment, handset, key, name, reference, format)
		), found AS (
			SELECT r.id, i.* FROM input i JOIN receipts r ON r.key = i.name AND r.carrier = $1
			WHERE i.name <> '' AND r.message_id IS NULL AND r.status IS NOT NULL AND r.received_at > now() - $10::interval AND r.handset = i.handset
			UNION ALL
			SELECT r.id, i.* FROM input i JOIN receipts r ON r.reference = i.reference AND r.carrier = $1
			WHERE r.message_id IS NULL AND r.status IS NOT NULL AND r.received_at > now() - $10::interval AND r.handset = i.handset
		), first AS (
			SELECT DISTINCT ON (n) * FROM found ORDER BY n, id
		), taken AS (
			DELETE FROM receipts r USING first f WHERE r.id = f.id
			RETURNING f.n, f.message_id, f.segment, f.key, f.format, r.status, r.state, r.error, r.received_at
		)
		UPDATE segments s SET state = t.status, receipt = t.state, error = t.error, receipt_at = t.received_at
		FROM taken t WHERE s.message_id = t.message_id AND s.segment = t.segment AND s.key = t.key AND s.carrier = $1 AND s.state IS NULL
		RETURNING t.n, t.format, s.state, s.receipt, s.error, s.receipt_at`,
		r.carrier, index, ids, numbers, handsets, keys, names, references, formats, inboxReach)
	if err != nil {
		return fmt.Errorf("looking for early receipts of %d segments: %w", len(ids), err)
	}
	return r.note(rows)
}
