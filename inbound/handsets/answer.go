package handsets

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// AnswerState is how far the automatic answer to a message has come. Besides these, it may be the reason of an
// sms.Refusal, for which the answer was not sent.
type AnswerState string

// States of answers.
const (
	AnswerDue  AnswerState = "due"  // not sent yet
	AnswerSent AnswerState = "sent" // accepted, and paid by the company

	AnswerClosed   AnswerState = "closed"     // the message came outside the route's hours
	AnswerRepeated AnswerState = "repeated"   // the number had an answer to the keyword a moment before
	AnswerNoPerson AnswerState = "no_person"  // the sender is a short code, a name or a foreign number
	AnswerOwn      AnswerState = "own_number" // the sender is an address of the gateway
	AnswerNoRoute  AnswerState = "no_route"   // the route was removed
	AnswerNoGroup  AnswerState = "not_joined" // the number cannot join the group that the answer is about
	AnswerLate     AnswerState = "late"       // it could not be sent in time

	// Two reasons of refusals.
	AnswerUnpaid   AnswerState = "insufficient_credits"
	AnswerOptedOut AnswerState = "opted_out"
)

// HadAnswer reports whether a number's message to a company under a keyword got an answer, or is about to, within
// window before or after at.
func (s *Store) HadAnswer(ctx context.Context, company int64, from, keyword string, at time.Time,
	window time.Duration) (found bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM inbound_messages WHERE source = $1 AND company_id = $2
		AND received_at > $4::timestamptz - $5::interval AND received_at < $4::timestamptz + $5::interval
		AND keyword = $3 AND answer IN ('due', 'sent'))`,
		from, company, keyword, at, window).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("looking for earlier answers of company %d: %w", company, err)
	}
	return found, nil
}

// DueAnswer is a message whose answer is to be sent.
type DueAnswer struct {
	ID        int64 // of the message
	CompanyID int64
	At        time.Time
	Carrier   string
	From, To  string
	Keyword   string // of its route
}

// DueAnswers returns messages whose answers are due, the oldest first, with ids above after.
func (s *Store) DueAnswers(ctx context.Context, after int64, limit int) ([]DueAnswer, error) {
	return postgres.All(ctx, s.pool, "looking for answers to messages from handsets", pgx.RowToStructByPos[DueAnswer],
		`SELECT id, company_id, received_at, carrier, source, destination, keyword FROM inbound_messages
		WHERE answer = 'due' AND id > $1 ORDER BY id LIMIT $2`, after, limit)
}

// TakeAnswer marks a message's answer as sent, in the transaction that sends it. It returns false if the answer is not
// due any more, or another process is about to send it.
func TakeAnswer(ctx context.Context, tx pgx.Tx, message int64, answer [16]byte) (taken bool, err error) {
	tag, err := tx.Exec(ctx, `UPDATE inbound_messages SET answer = 'sent', answer_id = $2 WHERE id = (SELECT id
		FROM inbound_messages WHERE id = $1 AND answer = 'due' FOR UPDATE SKIP LOCKED)`, message, answer)
	if err != nil {
		return false, fmt.Errorf("taking the answer to message %d from a handset: %w", message, err)
	}
	return tag.RowsAffected() == 1, nil
}

// DropAnswer records why a message's answer is not sent. It returns false if the answer is not due any more.
func (s *Store) DropAnswer(ctx context.Context, message int64, why AnswerState) (dropped bool, err error) {
	tag, err := s.pool.Exec(ctx, `UPDATE inbound_messages SET answer = $2 WHERE id = $1 AND answer = 'due'`, message,
		string(why))
	if err != nil {
		return false, fmt.Errorf("dropping the answer to message %d from a handset: %w", message, err)
	}
	return tag.RowsAffected() == 1, nil
}

// UnpaidAnswers reports whether a company lacked credits for an answer to another message within window before now.
func (s *Store) UnpaidAnswers(ctx context.Context, company, message int64, window time.Duration) (found bool,
	err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM inbound_messages WHERE company_id = $1 AND id <> $2
		AND received_at > now() - $3::interval AND answer = 'insufficient_credits')`, company, message, window).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("looking for unpaid answers of company %d: %w", company, err)
	}
	return found, nil
}
