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

// Message is a whole message from a handset to a company.
type Message struct {
	ID        int64 // inbound_id of the API and the webhooks
	CompanyID int64
	At        time.Time // of its last part
	Carrier   string
	From      string  // E.164 if it is a number of the country, else as the carrier wrote it
	To        string  // as the carrier wrote it
	Body      *string // nil: no text in a supported coding
	Parts     int

	Answer   AnswerState // of the automatic answer; "": its route has none
	AnswerID [16]byte    // ULID of the one that was sent

	Keyword string `db:"-"` // of its route, with an Answer; for Insert
}

// Insert stores a message and returns its id, from the sequence of the messages that companies send: webhooks number
// both kinds with one sequence.
func (s *Store) Insert(ctx context.Context, m Message) (id int64, err error) {
	err = s.pool.QueryRow(ctx, `INSERT INTO inbound_messages (id, company_id, received_at, carrier, source, destination,
		body, parts, keyword, answer)
		VALUES (nextval('messages_id_seq'), $1, $2, $3, $4, $5, $6, $7, CASE WHEN $9 <> '' THEN $8 END, nullif($9, ''))
		RETURNING id`,
		m.CompanyID, m.At, m.Carrier, m.From, m.To, m.Body, int16(m.Parts), m.Keyword, string(m.Answer)).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("storing a message from a handset to company %d: %w", m.CompanyID, err)
	}
	return id, nil
}

// Filter selects a company's messages; a zero field selects all.
type Filter struct {
	Senders []string  // from one of them, as Message.From
	From    time.Time // inclusive
	To      time.Time // exclusive
}

const messageColumns = `id, company_id, received_at, carrier, source, destination, body, parts, coalesce(answer, ''),
	coalesce(answer_id, '00000000-0000-0000-0000-000000000000')`

// List returns up to limit of a company's messages, the latest first, below the id before (0: from the latest), and the
// next page's before, 0 for none. ErrNotFound if the company has no message before (any more).
func (s *Store) List(ctx context.Context, company sms.CompanyID, f Filter, before int64, limit int) (page []Message,
	next int64, err error) {
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
	switch len(f.Senders) {
	case 0:
	case 1: // in the order of the index
		where.WriteString(condition(` AND source = $%d`, f.Senders[0]))
	default:
		where.WriteString(condition(` AND source = ANY($%d)`, f.Senders))
	}
	query := `SELECT ` + messageColumns + ` FROM inbound_messages WHERE company_id = $1` + where.String() +
		condition(` ORDER BY received_at DESC, id DESC LIMIT $%d`, limit+1)
	page, err = s.messages(ctx, query, args...)
	if err != nil || len(page) <= limit {
		return page, 0, err
	}
	page = page[:limit]
	return page, page[limit-1].ID, nil
}

// Message returns one of the company's messages, or ErrNotFound.
func (s *Store) Message(ctx context.Context, company sms.CompanyID, id int64) (Message, error) {
	found, err := s.messages(ctx, `SELECT `+messageColumns+` FROM inbound_messages WHERE id = $1 AND company_id = $2`, id,
		int64(company))
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Message{}, fmt.Errorf("message %d from a handset: %w", id, err)
	}
	return found[0], nil
}

func (s *Store) messages(ctx context.Context, query string, args ...any) ([]Message, error) {
	return postgres.All(ctx, s.pool, "reading messages from handsets", pgx.RowToStructByPos[Message], query, args...)
}
