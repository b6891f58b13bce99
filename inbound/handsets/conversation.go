package handsets

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Conversation is a handset that has written to a company, at its latest message.
type Conversation struct {
	Message

	Unread int // of the messages that one page reads
}

// conversed is how many of a company's messages one list of conversations reads.
const conversed = 2_000

// Place is where a list of conversations continues. The zero Place is its beginning.
type Place struct {
	From int64 // the message from which on older ones are read, itself included; 0: the latest
	Skip int   // conversations of these messages that other pages have
}

// ConversationFilter selects conversations; a zero field selects all.
type ConversationFilter struct {
	Text string   // in one of the messages, in any case
	Of   []string // with one of them, as Message.From, or with Text
}

// Conversations returns up to limit of a company's conversations, and the next page's place, the zero one for none: of
// the latest conversed messages first those with unread ones, then the others, the latest first; then those of the next
// ones in the same way. A page may have fewer than limit conversations, even none, and still have a next one.
// ErrNotFound if the message of the place does not exist any more.
func (s *Store) Conversations(ctx context.Context, company sms.CompanyID, f ConversationFilter, p Place, limit int) (
	page []Conversation, next Place, err error) {
	if !company.Valid() {
		return nil, Place{}, nil
	}
	top := time.Time{}
	if p.From > 0 {
		m, err := s.Message(ctx, company, p.From)
		if err != nil {
			return nil, Place{}, err
		}
		top = m.At
	}
	var last []int64 // the message after those that are read
	scan := func(row pgx.CollectableRow) (c Conversation, err error) {
		m := &c.Message
		err = row.Scan(&m.ID, &m.CompanyID, &m.At, &m.Carrier, &m.From, &m.To, &m.Body, &m.Parts, &m.Answer, &m.AnswerID,
			&c.Unread, &last)
		return c, err
	}
	page, err = postgres.All(ctx, s.pool, "reading conversations", scan, `
		WITH recent AS MATERIALIZED (
			SELECT id, source, received_at, body FROM inbound_messages
			WHERE company_id = $1 AND ($2 = 0 OR (received_at, id) <= ($3::timestamptz, $2))
			ORDER BY received_at DESC, id DESC LIMIT $4 + 1
		), further AS (
			SELECT id FROM recent ORDER BY received_at DESC, id DESC OFFSET $4
		), everything AS (
			SELECT coalesce((SELECT up_to FROM read_marks WHERE company_id = $1 AND phone_number = ''), 0) AS up_to
		), last AS (
			SELECT (array_agg(r.id ORDER BY r.received_at DESC, r.id DESC))[1] AS id,
				count(*) FILTER (WHERE r.id > greatest(k.up_to, e.up_to)) AS unread
			FROM recent r CROSS JOIN everything e LEFT JOIN read_marks k ON k.phone_number = r.source AND k.company_id = $1
			WHERE r.id NOT IN (SELECT id FROM further)
			GROUP BY r.source
			HAVING ($2 = 0 OR NOT EXISTS (SELECT FROM inbound_messages n WHERE n.source = r.source AND n.company_id = $1
					AND (n.received_at, n.id) > ($3::timestamptz, $2)))
				AND ($5 = '' AND $6::text[] = '{}' OR r.source = ANY($6) OR $5 <> '' AND bool_or(r.body ILIKE $5))
		)
		SELECT `+messageColumns+`, unread, ARRAY(SELECT id FROM further)
		FROM last JOIN inbound_messages m USING (id) ORDER BY unread = 0, received_at DESC, id DESC OFFSET $7 LIMIT $8 + 1`,
		int64(company), p.From, top, conversed, like(f.Text), append([]string{}, f.Of...), p.Skip, limit)
	switch {
	case err != nil:
		return nil, Place{}, err
	case len(page) > limit:
		return page[:limit], Place{p.From, p.Skip + limit}, nil
	case len(last) > 0:
		return page, Place{From: last[0]}, nil
	case len(page) == 0: // no row says whether older messages follow
		next, err = s.beyond(ctx, company, p, top)
		return nil, next, err
	}
	return page, Place{}, nil
}

// beyond returns the place after the messages that a list without conversations reads.
func (s *Store) beyond(ctx context.Context, company sms.CompanyID, p Place, top time.Time) (next Place, err error) {
	ids, err := postgres.All(ctx, s.pool, "reading conversations", pgx.RowTo[int64], `SELECT id FROM inbound_messages
		WHERE company_id = $1 AND ($2 = 0 OR (received_at, id) <= ($3::timestamptz, $2))
		ORDER BY received_at DESC, id DESC OFFSET $4 LIMIT 1`, int64(company), p.From, top, conversed)
	if len(ids) > 0 {
		next.From = ids[0]
	}
	return next, err
}

// like returns the pattern of ILIKE for a text that is contained.
func like(text string) string {
	if text == "" {
		return ""
	}
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(postgres.Text(text)) + "%"
}

// With returns up to limit messages from a handset to a company, the latest first, with ids below before (0: from the
// latest).
func (s *Store) With(ctx context.Context, company sms.CompanyID, from string, before int64, limit int) ([]Message,
	error) {
	if !company.Valid() {
		return nil, nil
	}
	return s.messages(ctx, `SELECT `+messageColumns+` FROM inbound_messages WHERE source = $1 AND company_id = $2
		AND ($3 = 0 OR id < $3) ORDER BY received_at DESC, id DESC LIMIT $4`, from, int64(company), before, limit)
}

// Read marks a handset's messages to a company as read, up to an id; from "" marks those of all handsets.
func (s *Store) Read(ctx context.Context, company sms.CompanyID, from string, upTo int64) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO read_marks AS m (phone_number, company_id, up_to) VALUES ($1, $2, $3)
		ON CONFLICT (phone_number, company_id) DO UPDATE SET up_to = excluded.up_to, read_at = now()
		WHERE m.up_to < excluded.up_to`, from, int64(company), upTo)
	if err != nil {
		return fmt.Errorf("noting what company %d has read: %w", int64(company), err)
	}
	return nil
}

// Unread reports whether a handset's message, the latest one to a company, is unread.
func (s *Store) Unread(ctx context.Context, company sms.CompanyID, from string, message int64) (unread bool,
	err error) {
	err = s.pool.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM read_marks WHERE company_id = $1
		AND phone_number IN ($2, '') AND up_to >= $3)`, int64(company), from, message).Scan(&unread)
	if err != nil {
		return false, fmt.Errorf("looking at what company %d has read: %w", int64(company), err)
	}
	return unread, nil
}
