package handsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"intumwa/internal/postgres"
)

// Inbound is an MO as a carrier delivered it (a deliver_sm that is not a receipt): a message, or a part of a long one.
type Inbound struct {
	ID          int64
	At          time.Time
	Carrier     string
	Link        string
	Source      string
	Destination string
	DataCoding  uint8
	ESMClass    uint8
	Body        *string   // nil: not text in a supported coding
	Octets      []byte    // as received, header included; packed septets are unpacked
	Part        *Part     // nil: a whole message
	Reference   *uint16   // user_message_reference
	BoundAt     time.Time // when its session was bound
	AnsweredAt  time.Time // when its response was written; zero: not, or not yet

	Outcome Outcome // "": not routed yet

	Answer AnswerState // of its company's message, for operators (Inbounds)
}

// Part identifies a part of a long message.
type Part struct {
	Reference int32 // the same for all parts of a message
	Total     int
	Number    int // from 1
}

// Outcome is the result of routing a delivered message, from a closed set: a metric's label.
type Outcome string

// Outcomes.
const (
	Routed   Outcome = "routed"   // it became a company's message, or a part of one
	Unrouted Outcome = "unrouted" // no route or sender leads to a company
	Waiting  Outcome = "waiting"  // a part whose message is incomplete
	// a part whose message was not completed in time; its company, if known, has it with gaps
	Incomplete Outcome = "incomplete"
	Duplicate  Outcome = "duplicate" // the carrier had delivered it before
	TooLong    Outcome = "too_long"  // it, or its message, exceeds the limits
)

// Outcomes returns the final ones.
func Outcomes() []Outcome { return []Outcome{Routed, Unrouted, Incomplete, Duplicate, TooLong} }

// Keep stores deliveries in the transaction after which they are acknowledged, and sets their ids.
func (s *Store) Keep(ctx context.Context, tx pgx.Tx, inbound []Inbound) error {
	if len(inbound) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for i := range inbound {
		m := &inbound[i]
		body := m.Body
		if body != nil {
			text := postgres.Text(*body)
			body = &text
		}
		var reference *int32
		var total, number *int16
		if p := m.Part; p != nil {
			of, n := int16(p.Total), int16(p.Number)
			reference, total, number = &p.Reference, &of, &n
		}
		batch.Queue(`INSERT INTO inbound (received_at, carrier, link, source, destination, data_coding, esm_class, body,
			octets,
				part_reference, part_total, part_number, reference, bound_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING id`,
			m.At, m.Carrier, m.Link, postgres.Text(m.Source), postgres.Text(m.Destination), int16(m.DataCoding),
			int16(m.ESMClass), body, m.Octets,
			reference, total, number, m.Reference, zeronull.Timestamptz(m.BoundAt)).QueryRow(
			func(row pgx.Row) error { return row.Scan(&m.ID) })
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("keeping %d messages from handsets: %w", len(inbound), err)
	}
	return nil
}

const inboundColumns = `id, received_at, carrier, link, source, destination, data_coding, esm_class, body, octets,
	part_reference, part_total, part_number, coalesce(outcome, ''), reference, bound_at, answered_at`

func scanInbound(row pgx.CollectableRow) (m Inbound, err error) {
	var reference *int32
	var total, number *int16
	err = row.Scan(&m.ID, &m.At, &m.Carrier, &m.Link, &m.Source, &m.Destination, &m.DataCoding, &m.ESMClass, &m.Body,
		&m.Octets,
		&reference, &total, &number, &m.Outcome, &m.Reference, (*zeronull.Timestamptz)(&m.BoundAt),
		(*zeronull.Timestamptz)(&m.AnsweredAt))
	if reference != nil && total != nil && number != nil {
		m.Part = &Part{Reference: *reference, Total: int(*total), Number: int(*number)}
	}
	return m, err
}

func (s *Store) inbounds(ctx context.Context, condition string, args ...any) ([]Inbound, error) {
	return postgres.All(ctx, s.pool, "reading messages from handsets", scanInbound, `SELECT `+inboundColumns+
		` FROM inbound WHERE `+condition, args...)
}

// Inbounds returns the latest MOs of all companies for operators, at most limit, and with before > 0 only those with
// smaller ids (the next page). Only those that no company has keep their text: of the others Body is nil, and Octets
// has only its length.
func (s *Store) Inbounds(ctx context.Context, before int64, limit int) ([]Inbound, error) {
	page, err := s.inbounds(ctx, `$1 <= 0 OR id < $1 ORDER BY id DESC LIMIT $2`, before, limit)
	if err != nil {
		return nil, err
	}
	ids, places := make([]int64, len(page)), make(map[int64]int, len(page))
	for i := range page {
		m := &page[i]
		if !m.Open() {
			m.Body = nil
			clear(m.Octets)
		}
		ids[i], places[m.ID] = m.ID, i
	}
	var id int64
	var state AnswerState
	err = postgres.Each(ctx, s.pool, "reading the answers to messages from handsets", []any{&id, &state},
		func() error { page[places[id]].Answer = state; return nil },
		`SELECT i.id, t.answer FROM inbound i JOIN inbound_messages t ON t.id = i.message_id
			WHERE i.id = ANY($1) AND t.answer IS NOT NULL`, ids)
	return page, err
}

// Open reports whether operators may see the text: no company has the message. A part, a repetition and a message that
// is too long or not routed yet may be a company's.
func (m *Inbound) Open() bool { return m.Outcome == Unrouted }

// Fresh returns MOs that are not routed yet, in the order in which they were stored, at most limit, except those of the
// handsets in without. Only one caller at a time may use it.
func (s *Store) Fresh(ctx context.Context, limit int, without []string) ([]Inbound, error) {
	return s.inbounds(ctx, `outcome IS NULL AND source <> ALL($2::text[]) ORDER BY id LIMIT $1`, limit, without)
}

// Waits returns the time of the oldest MO that is not routed; the zero time when all are.
func (s *Store) Waits(ctx context.Context) (since time.Time, err error) {
	err = s.pool.QueryRow(ctx, `SELECT received_at FROM inbound WHERE outcome IS NULL ORDER BY id LIMIT 1`).Scan(&since)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, fmt.Errorf("looking for the oldest message from a handset: %w", err)
	}
	return since, nil
}

// Parts returns the earlier parts of m's message that were received at most window before or after m, in any outcome
// but a duplicate's; of very many the latest.
func (s *Store) Parts(ctx context.Context, m *Inbound, window time.Duration) ([]Inbound, error) {
	return s.inbounds(
		ctx,
		`source = $1 AND received_at BETWEEN $2::timestamptz - $3::interval AND $2::timestamptz + $3::interval
			AND carrier = $4 AND destination = $5 AND part_reference = $6 AND part_total = $7 AND 
			outcome IN ('waiting', 'routed', 'unrouted', 'incomplete')
		ORDER BY id DESC LIMIT $8`,
		m.Source, m.At, window, m.Carrier, m.Destination, m.Part.Reference, int16(m.Part.Total), 2*MaxParts)
}

// Begun returns the company that has got other parts of m's message, received at most window before or after m,
// although m was missing; 0: none.
func (s *Store) Begun(ctx context.Context, m *Inbound, window time.Duration) (company int64, err error) {
	err = s.pool.QueryRow(ctx, `SELECT coalesce(CASE WHEN NOT bool_or(i.part_number = $8) THEN max(t.company_id) END, 0)
		FROM inbound i JOIN inbound_messages t ON t.id = i.message_id
		WHERE i.source = $1 AND i.received_at BETWEEN $2::timestamptz - $3::interval AND $2::timestamptz + $3::interval
		AND i.carrier = $4
			AND i.destination = $5 AND i.part_reference = $6 AND i.part_total = $7 AND i.outcome = 'incomplete'`,
		m.Source, m.At, window, m.Carrier, m.Destination, m.Part.Reference, int16(m.Part.Total), int16(m.Part.Number)).Scan(
		&company)
	if err != nil {
		return 0, fmt.Errorf("looking for the other parts of a message from a handset: %w", err)
	}
	return company, nil
}

// Overdue returns parts that have waited longer than window for the others, the oldest first, at most limit.
func (s *Store) Overdue(ctx context.Context, window time.Duration, limit int) ([]Inbound, error) {
	return s.inbounds(ctx, `outcome = 'waiting' AND received_at < now() - $1::interval ORDER BY received_at LIMIT $2`,
		window, limit)
}

// Mark stores the outcome of rows, and the id of their company's message (0: none).
func (s *Store) Mark(ctx context.Context, outcome Outcome, message int64, ids ...int64) error {
	if _, err := s.pool.Exec(ctx, `UPDATE inbound SET outcome = $1, message_id = nullif($2::bigint, 0) WHERE id = ANY($3)`,
		string(outcome), message, ids); err != nil {
		return fmt.Errorf("noting what became of messages from handsets: %w", err)
	}
	return nil
}

// Reply records that a message is acknowledged by a text to its handset. It returns false, and records nothing, if the
// handset got most of them within window.
func (s *Store) Reply(ctx context.Context, m *Inbound, most int, window time.Duration) (bool, error) {
	tag, err := s.pool.Exec(ctx, `UPDATE inbound SET replied = true WHERE id = $1
		AND (SELECT count(*) FROM inbound WHERE source = $2 AND received_at > $3::timestamptz - $4::interval
		AND replied) < $5`,
		m.ID, m.Source, m.At, window, most)
	if err != nil {
		return false, fmt.Errorf("noting the acknowledgement of a message from a handset: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// forgetLimit is the most that one call forgets.
const forgetLimit = 20_000

// Forget deletes MOs older than life, up to 20,000 of each table a call, and returns how many.
func (s *Store) Forget(ctx context.Context, life time.Duration) (int64, error) {
	var forgotten int64
	for _, table := range []string{"inbound", "inbound_messages"} {
		tag, err := s.pool.Exec(ctx, `DELETE FROM `+table+` WHERE id IN (
			SELECT id FROM `+table+` WHERE received_at < now() - $1::interval ORDER BY received_at LIMIT $2
				FOR UPDATE SKIP LOCKED)`, life, forgetLimit)
		if err != nil {
			return forgotten, fmt.Errorf("forgetting messages from handsets: %w", err)
		}
		forgotten += tag.RowsAffected()
	}
	// All messages that they refer to are older.
	_, err := s.pool.Exec(ctx, `DELETE FROM read_marks WHERE (phone_number, company_id) IN (
		SELECT phone_number, company_id FROM read_marks WHERE read_at < now() - $1::interval ORDER BY read_at LIMIT $2
			FOR UPDATE SKIP LOCKED)`, life, forgetLimit)
	if err != nil {
		return forgotten, fmt.Errorf("forgetting how far messages from handsets were read: %w", err)
	}
	return forgotten, nil
}
