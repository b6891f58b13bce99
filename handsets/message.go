package handsets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Message is a whole message from a handset to a company.
type Message struct {
	ID        int64 // inbound_id of the API and the webhooks
	CompanyID int64
	At        time.Time // of its last part
	Carrier   string
	From      string  // E.164 where it is a number of the country, else as the carrier wrote it
	To        string  // as the carrier wrote it
	Body      *string // nil: no text in a coding that is read
	Parts     int
}

// Insert stores a message and returns its id. The ids are drawn from the sequence
// of the messages that companies send: what webhooks tell of is numbered by one.
func (s *Store) Insert(ctx context.Context, m Message) (id int64, err error) {
	err = s.pool.QueryRow(ctx, `INSERT INTO inbound_messages (id, company_id, received_at, carrier, source, destination, body, parts)
		VALUES (nextval('messages_id_seq'), $1, $2, $3, $4, $5, $6, $7) RETURNING id`,
		m.CompanyID, m.At, m.Carrier, m.From, m.To, m.Body, int16(m.Parts)).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("storing a message from a handset to company %d: %w", m.CompanyID, err)
	}
	return id, nil
}

// Filter says which of a company's messages a list has; a zero field all.
type Filter struct {
	Number sms.Number // from it
	From   time.Time  // received then or later
	To     time.Time  // received before then
}

// scanned is how many of a company's messages one page looks through, however rare
// a number makes them.
const scanned = 5_000

const messageColumns = `id, company_id, received_at, carrier, source, destination, body, parts`

// List returns up to limit of a company's messages, the latest first, from behind
// the one with the id before (0: the latest there is), and where to go on from: 0
// when there are no more. A page for a number may have fewer, even none, and still
// go on. Where the company has no message before (any more) it is ErrNotFound.
func (s *Store) List(ctx context.Context, company sms.CompanyID, f Filter, before int64, limit int) (page []Message, next int64, err error) {
	if !company.Valid() {
		return nil, 0, nil
	}
	args := []any{int64(company)}
	condition := func(text string, arg any) string {
		args = append(args, arg)
		return fmt.Sprintf(text, len(args))
	}
	var where strings.Builder
	if before > 0 {
		last, err := s.Message(ctx, company, before)
		if err != nil {
			return nil, 0, err
		}
		where.WriteString(condition(` AND (received_at, id) < ($%d`, last.At) + condition(`, $%d)`, before))
	}
	if !f.From.IsZero() {
		where.WriteString(condition(` AND received_at >= $%d`, f.From))
	}
	if !f.To.IsZero() {
		where.WriteString(condition(` AND received_at < $%d`, f.To))
	}
	look := limit + 1
	if f.Number != "" {
		look = scanned
	}
	query := `SELECT ` + messageColumns + ` FROM inbound_messages WHERE company_id = $1` + where.String() +
		condition(` ORDER BY received_at DESC, id DESC LIMIT $%d`, look)
	if f.Number != "" {
		return s.fromNumber(ctx, query, args, f.Number, limit)
	}
	page, err = s.messages(ctx, query, args...)
	if err != nil || len(page) <= limit {
		return page, 0, err
	}
	page = page[:limit]
	return page, page[limit-1].ID, nil
}

// fromNumber picks a number's out of what a query looks through.
func (s *Store) fromNumber(ctx context.Context, query string, args []any, number sms.Number, limit int) (page []Message, next int64, err error) {
	var seen, last int64
	args = append(args, string(number), limit+1)
	rows, err := s.pool.Query(ctx, fmt.Sprintf(`WITH looked AS MATERIALIZED (%s), edge AS (
			SELECT count(*) AS seen, (array_agg(id ORDER BY received_at, id))[1] AS last FROM looked)
		SELECT e.seen, coalesce(e.last, 0), f.* FROM edge e LEFT JOIN LATERAL (
			SELECT id, company_id, received_at, carrier, source, destination, body, parts FROM looked WHERE source = $%d
			ORDER BY received_at DESC, id DESC LIMIT $%d) f ON true`, query, len(args)-1, len(args)), args...)
	if err != nil {
		return nil, 0, fmt.Errorf("listing messages from handsets: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var m struct {
			id, company       *int64
			at                *time.Time
			carrier, from, to *string
			body              *string
			parts             *int16
		}
		if err := rows.Scan(&seen, &last, &m.id, &m.company, &m.at, &m.carrier, &m.from, &m.to, &m.body, &m.parts); err != nil {
			return nil, 0, fmt.Errorf("listing messages from handsets: %w", err)
		}
		if m.id != nil {
			page = append(page, Message{*m.id, *m.company, *m.at, *m.carrier, *m.from, *m.to, m.body, int(*m.parts)})
		}
	}
	switch err := rows.Err(); {
	case err != nil:
		return nil, 0, fmt.Errorf("listing messages from handsets: %w", err)
	case len(page) > limit:
		page = page[:limit]
		return page, page[limit-1].ID, nil
	case seen == scanned:
		return page, last, nil
	}
	return page, 0, nil
}

// Message returns one of a company's messages; another company's is ErrNotFound, as
// is one that does not exist.
func (s *Store) Message(ctx context.Context, company sms.CompanyID, id int64) (Message, error) {
	found, err := s.messages(ctx, `SELECT `+messageColumns+` FROM inbound_messages WHERE id = $1 AND company_id = $2`, id, int64(company))
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Message{}, fmt.Errorf("message %d from a handset: %w", id, err)
	}
	return found[0], nil
}

func (s *Store) messages(ctx context.Context, query string, args ...any) ([]Message, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	var found []Message
	if err == nil {
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Message, err error) {
			var parts int16
			err = row.Scan(&m.ID, &m.CompanyID, &m.At, &m.Carrier, &m.From, &m.To, &m.Body, &parts)
			m.Parts = int(parts)
			return m, err
		})
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("reading messages from handsets: %w", err)
	}
	return found, nil
}
