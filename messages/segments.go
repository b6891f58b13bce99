package messages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Segment is one that a carrier accepted (submit_sm_resp with status 0), or may
// have (Unanswered).
type Segment struct {
	MessageID int64
	Segment   int // from 1
	Total     int
	Carrier   string
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
	// Unanswered: it takes that one's place.
	Late bool

	// Unsure says that how the link's receipts write ids was, or is yet to be,
	// learnt: a receipt that came before the response counts only when it names
	// the message's handset. Other are the keys of the id in the other formats
	// that the receipt may use.
	Unsure bool
	Other  []string
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

// Key is the normal form of a carrier's message id by which a receipt finds its
// segment: carriers write the same id in upper and lower case, with and
// without leading zeros. NUL and invalid UTF-8, which no id should hold and
// no database takes, are left out.
func Key(carrierID string) string {
	id := strings.ToLower(strings.TrimSpace(clean(carrierID)))
	if trimmed := strings.TrimLeft(id, "0"); trimmed != "" || id == "" {
		return trimmed
	}
	return "0"
}

func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
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
	Link      string // the segment's, where it was settled by Submitted
	Other     int    // which of Segment.Other the receipt had the id in, from 1; 0: the id itself
	From      int    // index of the receipt, where it was settled by Receipts

	// Unanswered: the receipt settled a segment whose answer never came. The
	// message may still stand in the outbox, to be sent again.
	Unanswered bool
}

// LockCarrier makes the caller's transaction the only one that records segments
// or receipts of carrier, until it ends. A receipt and the response that it
// belongs to may be worked on in two transactions (or two processes) at once;
// without the lock each could miss what the other is just writing.
//
// A process that sleeps, or whose machine is gone, in the middle of such a
// transaction must not keep the carrier from the others: the server ends a
// transaction that is left idle for three seconds.
func (s *Store) LockCarrier(ctx context.Context, tx pgx.Tx, carrier string) error {
	if _, err := tx.Exec(ctx, lockCarrier, carrier); err != nil {
		return fmt.Errorf("locking carrier %s: %w", carrier, err)
	}
	return nil
}

const lockCarrier = `SELECT set_config('idle_in_transaction_session_timeout', '3000', true),
	pg_advisory_xact_lock(hashtextextended('intumwa carrier ' || $1, 0))`

// Recorded is what came of the segments and receipts of one Record.
type Recorded struct {
	Submitted []SegmentState // settled as their segments were recorded
	Reported  []SegmentState // settled by one of the receipts
	Outcomes  []Outcome      // of the receipts, in their order
}

// Record takes the carrier's lock (LockCarrier) and records segments that it
// has accepted, then receipts in the order given; all are of that carrier. Of a
// segment's final states the first wins (rule choices 5.3). Segments
// that are final at once (confirmed by the acceptance itself, or by a receipt
// that came before the response) are among Submitted. Of the receipts that no
// segment is found for, room are kept; the others are Throttled. Commonly it
// costs one round trip.
func (s *Store) Record(ctx context.Context, tx pgx.Tx, carrier string, segments []Segment, receipts []Receipt, room int) (Recorded, error) {
	b := &pgx.Batch{}
	b.Queue(lockCarrier, carrier)
	written := submitted{segments: segments}
	written.queue(b)
	reports := newReports(receipts, room)
	reports.byID.queue(b, carrier)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return Recorded{}, fmt.Errorf("recording %d segments and %d receipts of carrier %s: %w", len(segments), len(receipts), carrier, err)
	}
	otherwise, err := s.earlyOtherwise(ctx, tx, segments, written.early)
	if err != nil {
		return Recorded{}, err
	}
	if err := reports.finish(ctx, tx, carrier); err != nil {
		return Recorded{}, err
	}
	return Recorded{
		Submitted: slices.Concat(written.confirmed, written.early, otherwise),
		Reported:  reports.states(),
		Outcomes:  reports.outcomes,
	}, nil
}

// InboxReach is how long before its response a receipt may have come. Longer
// would match receipts of old messages when a carrier counts its ids anew.
const InboxReach = 15 * time.Minute

// submitted is the recording of accepted segments, on its way in a pipeline.
type submitted struct {
	segments  []Segment
	confirmed []SegmentState // final by their acceptance
	early     []SegmentState // final by a receipt that came before the response
}

// queue adds the recording of segments, all of one carrier, to a pipeline.
func (r *submitted) queue(b *pgx.Batch) {
	segments := r.segments
	if len(segments) == 0 {
		return
	}
	n := len(segments)
	var (
		ids             = make([]int64, n)
		numbers, totals = make([]int16, n), make([]int16, n)
		links, keys     = make([]string, n), make([]string, n)
		raw             = make([]*string, n)
		at              = make([]time.Time, n)
		states          = make([]*int16, n)
		unsure          = make([]bool, n)
		lateIDs         []int64
		lateSegments    []int16
	)
	sent := int16(sms.Sent)
	for i, p := range segments {
		ids[i], numbers[i], totals[i], links[i], at[i] = p.MessageID, int16(p.Segment), int16(p.Total), p.Link, p.At
		keys[i], unsure[i] = p.key(), p.Unsure || p.Unanswered
		if p.Unanswered {
			continue
		}
		if p.Late {
			lateIDs, lateSegments = append(lateIDs, p.MessageID), append(lateSegments, int16(p.Segment))
		}
		if id := clean(p.CarrierID); id != "" && id != keys[i] {
			raw[i] = &id
		}
		if p.Confirmed {
			states[i] = &sent
			r.confirmed = append(r.confirmed, SegmentState{MessageID: p.MessageID, Segment: p.Segment, Total: p.Total, Status: sms.Sent, At: p.At, Link: p.Link})
		}
	}
	if len(lateIDs) > 0 {
		b.Queue(`DELETE FROM segments s USING unnest($1::bigint[], $2::smallint[]) u(message_id, segment)
			WHERE s.message_id = u.message_id AND s.segment = u.segment AND s.key LIKE '?%' AND s.state IS NULL`, lateIDs, lateSegments)
	}
	// Every answer that a carrier confirms by receipt may have its receipt in
	// the inbox. The segment takes over its state as it is written.
	b.Queue(`
		WITH input AS (
			SELECT * FROM unnest($2::bigint[], $3::smallint[], $4::smallint[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::smallint[], $11::boolean[])
				AS u(message_id, segment, total, link, key, raw, at, state, unsure)
		), early AS (
			DELETE FROM receipts r USING input i
			WHERE r.key = i.key AND r.carrier = $1 AND r.message_id IS NULL AND i.key <> '' AND i.state IS NULL
				AND r.status IS NOT NULL AND r.received_at > now() - $10::interval
				AND ((NOT i.unsure AND r.link = i.link) OR (r.number !~ '[0-9]{8}$' AND i.key !~ '^[?!]') OR EXISTS (
					SELECT FROM messages m WHERE m.id = i.message_id AND right(m.phone_number, 8) = right(r.number, 8)))
			RETURNING r.id, r.key, r.status, r.state, r.error, r.received_at
		), first AS (
			SELECT DISTINCT ON (key) * FROM early ORDER BY key, id
		), written AS (
			INSERT INTO segments (message_id, segment, total, carrier, link, key, carrier_id, submitted_at, state, receipt, error, receipt_at)
			SELECT i.message_id, i.segment, i.total, $1, i.link, i.key, i.raw, i.at, coalesce(i.state, f.status), f.state, f.error, f.received_at
			FROM input i LEFT JOIN first f USING (key)
		)
		SELECT i.message_id, i.segment, i.total, i.link, i.key LIKE '?%', f.status, f.state, f.error, f.received_at
		FROM input i JOIN first f USING (key)`,
		segments[0].Carrier, ids, numbers, totals, links, keys, raw, at, states, InboxReach, unsure).
		Query(func(rows pgx.Rows) (err error) {
			r.early, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (st SegmentState, err error) {
				err = row.Scan(&st.MessageID, &st.Segment, &st.Total, &st.Link, &st.Unanswered, &st.Status, &st.Receipt, &st.Error, &st.At)
				return st, err
			})
			if err != nil {
				return fmt.Errorf("recording %d segments: %w", n, err)
			}
			return nil
		})
}

// earlyOtherwise settles segments just recorded by receipts of the inbox that name
// them otherwise than by their id: in another format of it, or, where there is
// none, by their user_message_reference; and always by their handset.
func (s *Store) earlyOtherwise(ctx context.Context, tx pgx.Tx, segments []Segment, settled []SegmentState) ([]SegmentState, error) {
	type segment struct {
		message int64
		n       int
	}
	done := make(map[segment]bool, len(settled))
	for _, st := range settled {
		done[segment{st.MessageID, st.Segment}] = true
	}
	var (
		ids             []int64
		numbers, others []int16
		keys, names     []string
		references      []*int32
	)
	for _, p := range segments {
		if p.Confirmed || done[segment{p.MessageID, p.Segment}] {
			continue
		}
		key := p.key()
		add := func(name string, reference *int32, other int) {
			ids, numbers, others = append(ids, p.MessageID), append(numbers, int16(p.Segment)), append(others, int16(other))
			keys, names, references = append(keys, key), append(names, name), append(references, reference)
		}
		if p.Unanswered || key == namelessKey(p.Reference) {
			reference := int32(p.Reference)
			add("", &reference, 0)
			continue
		}
		for i, name := range p.Other {
			if name != "" {
				add(name, nil, i+1)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `
		WITH input AS (
			SELECT u.*, right(m.phone_number, 8) AS handset
			FROM unnest($2::bigint[], $3::smallint[], $4::text[], $5::text[], $6::int[], $7::smallint[]) u(message_id, segment, key, name, reference, other)
			JOIN messages m ON m.id = u.message_id
		), found AS (
			SELECT r.id, i.* FROM input i JOIN receipts r ON r.key = i.name AND r.carrier = $1
			WHERE i.name <> '' AND r.message_id IS NULL AND r.status IS NOT NULL AND r.received_at > now() - $8::interval AND right(r.number, 8) = i.handset
			UNION ALL
			SELECT r.id, i.* FROM input i JOIN receipts r ON r.reference = i.reference AND r.carrier = $1
			WHERE r.message_id IS NULL AND r.status IS NOT NULL AND r.received_at > now() - $8::interval AND right(r.number, 8) = i.handset
		), first AS (
			SELECT DISTINCT ON (message_id, segment) * FROM found ORDER BY message_id, segment, id
		), taken AS (
			DELETE FROM receipts r USING first f WHERE r.id = f.id
			RETURNING f.message_id, f.segment, f.key, f.other, r.status, r.state, r.error, r.received_at
		)
		UPDATE segments s SET state = t.status, receipt = t.state, error = t.error, receipt_at = t.received_at
		FROM taken t WHERE s.message_id = t.message_id AND s.segment = t.segment AND s.key = t.key AND s.carrier = $1 AND s.state IS NULL
		RETURNING s.message_id, s.segment, s.total, s.link, s.key LIKE '?%', t.other, s.state, s.receipt, s.error, s.receipt_at`,
		segments[0].Carrier, ids, numbers, keys, names, references, others, InboxReach)
	if err != nil {
		return nil, fmt.Errorf("looking for early receipts of %d segments: %w", len(ids), err)
	}
	states, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (st SegmentState, err error) {
		err = row.Scan(&st.MessageID, &st.Segment, &st.Total, &st.Link, &st.Unanswered, &st.Other, &st.Status, &st.Receipt, &st.Error, &st.At)
		return st, err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for early receipts of %d segments: %w", len(ids), err)
	}
	return states, nil
}

// Refused is a segment recorded as unanswered that its carrier refused for now
// after all: it does not have it.
type Refused struct {
	MessageID int64
	Segment   int // from 1
	Delay     time.Duration
}

// epochUnknown is where the claims of a message are counted on that was held by a
// release which did not write down how many it had: far above any count.
const epochUnknown = 1 << 30

// PutBack puts pending messages on the outbox again whose segments were refused
// late, if they are within their validity and not on it already. Each has the
// rest of its own validity, and its claims are counted on from the last. validity
// is only for those that were held by a release which did not write that down.
func (s *Store) PutBack(ctx context.Context, tx pgx.Tx, refused []Refused, validity time.Duration) error {
	if len(refused) == 0 {
		return nil
	}
	n := len(refused)
	ids, numbers, delays := make([]int64, n), make([]int16, n), make([]float64, n)
	for i, r := range refused {
		ids[i], numbers[i], delays[i] = r.MessageID, int16(r.Segment), r.Delay.Seconds()
	}
	b := &pgx.Batch{}
	b.Queue(`DELETE FROM segments s USING unnest($1::bigint[], $2::smallint[]) u(message_id, segment)
		WHERE s.message_id = u.message_id AND s.segment = u.segment AND s.key LIKE '?%' AND s.state IS NULL`, ids, numbers)
	b.Queue(`WITH input AS (
			SELECT id, max(delay) AS delay FROM unnest($1::bigint[], $2::float8[]) u(id, delay) GROUP BY id
		)
		INSERT INTO outbox (message_id, company_id, carrier, lane, attempts, due_at, expires_at, pushed_at, epoch)
		SELECT m.id, m.company_id, m.carrier, CASE WHEN m.batch_id IS NULL THEN $4::smallint ELSE $5::smallint END, 1,
			now() + make_interval(secs => i.delay), coalesce(b.expires_at, m.created_at + $3::interval), NULL, coalesce(b.epoch, $6)
		FROM input i JOIN messages m ON m.id = i.id LEFT JOIN held b ON b.message_id = i.id
		WHERE m.status = 0 AND coalesce(b.expires_at, m.created_at + $3::interval) > now()
		ORDER BY m.id ON CONFLICT DO NOTHING`, ids, delays, validity, int16(LaneSingle), int16(LaneBatch), epochUnknown)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("putting %d messages back: %w", n, err)
	}
	return nil
}

// holdGone writes down what PutBack needs of the outbox rows in gone.
const holdGone = `INSERT INTO held (message_id, epoch, expires_at) SELECT message_id, epoch, expires_at FROM gone
	ON CONFLICT (message_id) DO UPDATE SET epoch = greatest(held.epoch, excluded.epoch), expires_at = excluded.expires_at`

// Ends says how the attempts of messages go on that a dispatcher had claimed.
type Ends struct {
	Dispatcher int64
	Carried    []int64 // a carrier has all their segments
	Held       []int64 // a carrier may have them: they are not to be sent again unless they are put back (PutBack)
	Retries    []Retry
}

// Retry is a message to be tried again after Delay.
type Retry struct {
	Claim
	Delay  time.Duration // 0: it is due as long as it was
	Counts bool          // whether this attempt counts
}

// queue adds the statements that end attempts, or put them off, to a pipeline.
func (e Ends) queue(b *pgx.Batch) {
	if len(e.Carried) > 0 {
		slices.Sort(e.Carried) // here and below the order of locking
		b.Queue(`DELETE FROM outbox WHERE message_id = ANY($1) AND (claimed_by = $2 OR claimed_by IS NULL)`, e.Carried, e.Dispatcher)
	}
	if len(e.Held) > 0 {
		b.Queue(`WITH gone AS (
				DELETE FROM outbox WHERE message_id = ANY($1) AND (claimed_by = $2 OR claimed_by IS NULL) RETURNING message_id, epoch, expires_at
			) `+holdGone, e.Held, e.Dispatcher)
	}
	if len(e.Retries) == 0 {
		return
	}
	slices.SortFunc(e.Retries, func(a, b Retry) int { return cmp.Compare(a.MessageID, b.MessageID) })
	n := len(e.Retries)
	ids, epochs, begun, delays, free := make([]int64, n), make([]int32, n), make([]bool, n), make([]float64, n), make([]int32, n)
	for i, r := range e.Retries {
		ids[i], epochs[i], begun[i], delays[i] = r.MessageID, int32(r.Epoch), r.Begun, r.Delay.Seconds()
		if !r.Counts {
			free[i] = 1
		}
	}
	b.Queue(`UPDATE outbox o SET claimed_by = NULL, pushed_at = NULL, begun = u.begun,
			due_at = CASE WHEN u.delay > 0 THEN now() + make_interval(secs => u.delay) ELSE o.due_at END, attempts = greatest(o.attempts - u.free, 0)
		FROM unnest($2::bigint[], $3::int[], $4::float8[], $5::int[], $6::boolean[]) u(id, epoch, delay, free, begun)
		WHERE o.message_id = u.id AND o.epoch = u.epoch AND o.claimed_by = $1`, e.Dispatcher, ids, epochs, delays, free, begun)
}
