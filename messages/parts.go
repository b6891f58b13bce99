package messages

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Part is a segment that a carrier accepted (submit_sm_resp with status 0).
type Part struct {
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
	// (user_message_reference) can still settle it.
	Unanswered bool
	Reference  uint16
}

// referenceKey is the key of an unanswered segment. No carrier's id looks like
// it: Key never begins with a question mark that the carrier did not send, and
// a match is made only with the handset's number beside it.
func referenceKey(reference uint16) string { return "?" + strconv.Itoa(int(reference)) }

// Key is the form of a carrier's message id by which a receipt finds its
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

	// Unanswered: the receipt settled a segment whose answer never came. The
	// message may still stand in the outbox, to be sent again.
	Unanswered bool
}

// LockCarrier makes the caller's transaction the only one that records parts
// or receipts of carrier, until it ends. A receipt and the response that it
// belongs to may be worked on in two transactions (or two processes) at once;
// without the lock each could miss what the other is just writing.
func (s *Store) LockCarrier(ctx context.Context, tx pgx.Tx, carrier string) error {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('intumwa carrier ' || $1, 0))`, carrier); err != nil {
		return fmt.Errorf("locking carrier %s: %w", carrier, err)
	}
	return nil
}

// inboxReach is how long before its response a receipt may have come. Longer
// would match receipts of old messages when a carrier counts its ids anew.
const inboxReach = 15 * time.Minute

// Submitted records accepted segments, all of one carrier, and returns those
// that are final at once: confirmed by the acceptance itself, or by a receipt
// that came before the response. The caller holds LockCarrier.
func (s *Store) Submitted(ctx context.Context, tx pgx.Tx, parts []Part) ([]SegmentState, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	n := len(parts)
	var (
		ids              = make([]int64, n)
		segments, totals = make([]int16, n), make([]int16, n)
		links, keys      = make([]string, n), make([]string, n)
		raw              = make([]*string, n)
		at               = make([]time.Time, n)
		states           = make([]*int16, n)
		final            []SegmentState
	)
	sent := int16(sms.Sent)
	for i, p := range parts {
		ids[i], segments[i], totals[i], links[i], at[i] = p.MessageID, int16(p.Segment), int16(p.Total), p.Link, p.At
		keys[i] = Key(p.CarrierID)
		if p.Unanswered {
			keys[i] = referenceKey(p.Reference)
			continue
		}
		if id := clean(p.CarrierID); id != keys[i] {
			raw[i] = &id
		}
		if p.Confirmed {
			states[i] = &sent
			final = append(final, SegmentState{MessageID: p.MessageID, Segment: p.Segment, Total: p.Total, Status: sms.Sent, At: p.At})
		}
	}
	// Every answer that a carrier confirms by receipt may have its receipt in
	// the inbox. The part takes over its state as it is written.
	rows, err := tx.Query(ctx, `
		WITH input AS (
			SELECT * FROM unnest($2::bigint[], $3::smallint[], $4::smallint[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::smallint[])
				AS u(message_id, segment, total, link, key, raw, at, state)
		), early AS (
			DELETE FROM receipts r USING input i
			WHERE r.key = i.key AND r.carrier = $1 AND r.message_id IS NULL AND i.key <> '' AND i.state IS NULL
				AND r.status IS NOT NULL AND r.received_at > now() - $10::interval
			RETURNING r.id, r.key, r.status, r.state, r.error, r.received_at
		), first AS (
			SELECT DISTINCT ON (key) * FROM early ORDER BY key, id
		), written AS (
			INSERT INTO parts (message_id, segment, total, carrier, link, key, carrier_id, submitted_at, state, receipt, error, receipt_at)
			SELECT i.message_id, i.segment, i.total, $1, i.link, i.key, i.raw, i.at, coalesce(i.state, f.status), f.state, f.error, f.received_at
			FROM input i LEFT JOIN first f USING (key)
		)
		SELECT i.message_id, i.segment, i.total, f.status, f.state, f.error, f.received_at FROM input i JOIN first f USING (key)`,
		parts[0].Carrier, ids, segments, totals, links, keys, raw, at, states, inboxReach)
	if err != nil {
		return nil, fmt.Errorf("recording %d segments: %w", n, err)
	}
	early, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (st SegmentState, err error) {
		err = row.Scan(&st.MessageID, &st.Segment, &st.Total, &st.Status, &st.Receipt, &st.Error, &st.At)
		return st, err
	})
	if err != nil {
		return nil, fmt.Errorf("recording %d segments: %w", n, err)
	}
	return append(final, early...), nil
}

// Carried ends the journey of messages all of whose segments a carrier has.
func (s *Store) Carried(ctx context.Context, tx pgx.Tx, dispatcher int64, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM outbox WHERE message_id = ANY($1) AND (claimed_by = $2 OR claimed_by IS NULL)`, ids, dispatcher); err != nil {
		return fmt.Errorf("ending %d journeys: %w", len(ids), err)
	}
	return nil
}

// Retry is a message to be tried again after Delay.
type Retry struct {
	MessageID int64
	Delay     time.Duration
	Counts    bool // whether this attempt counts
}

// Retry gives claimed messages back, due later.
func (s *Store) Retry(ctx context.Context, tx pgx.Tx, dispatcher int64, retries []Retry) error {
	if len(retries) == 0 {
		return nil
	}
	ids, delays, free := make([]int64, len(retries)), make([]float64, len(retries)), make([]int32, len(retries))
	for i, r := range retries {
		ids[i], delays[i] = r.MessageID, r.Delay.Seconds()
		if !r.Counts {
			free[i] = 1
		}
	}
	_, err := tx.Exec(ctx, `UPDATE outbox o SET claimed_by = NULL, pushed_at = NULL,
			due_at = now() + make_interval(secs => u.delay), attempts = greatest(o.attempts - u.free, 0)
		FROM unnest($2::bigint[], $3::float8[], $4::int[]) u(id, delay, free)
		WHERE o.message_id = u.id AND o.claimed_by = $1`, dispatcher, ids, delays, free)
	if err != nil {
		return fmt.Errorf("putting off %d messages: %w", len(ids), err)
	}
	return nil
}
