package handsets

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// ofNumber selects what came from a number, or went to it, in the forms $1. It reads
// all that is kept.
const ofNumber = `(source = ANY($1::text[]) OR destination = ANY($1::text[]))`

// formsOf are the forms in which carriers write a number: those that Number reads.
func formsOf(number sms.Number) []string {
	digits := number.Digits()
	return []string{"+" + digits, digits, "00" + digits, strings.TrimPrefix(digits, "257")}
}

// InboundOf returns what carriers delivered from a number, or to it.
func (s *Store) InboundOf(ctx context.Context, number sms.Number) ([]Inbound, error) {
	return collectInbound(s.pool.Query(ctx, `SELECT `+inboundColumns+` FROM inbound WHERE `+ofNumber+` ORDER BY id`, formsOf(number)))
}

// Ref names a company's message.
type Ref struct{ CompanyID, ID int64 }

// EraseInbound deletes what carriers delivered from a number, or to it, and what
// companies have of it. It returns how many deliveries those were, and which messages
// of companies. What nobody has looked at yet, and parts that wait for others, are left
// (they may be a STOP) and counted as pending. Opt-outs stay: they are what the number's
// owner asked for.
func (s *Store) EraseInbound(ctx context.Context, number sms.Number) (deleted, pending int64, messages []Ref, err error) {
	err = s.pool.QueryRow(ctx, `WITH gone AS (DELETE FROM inbound WHERE `+ofNumber+` AND outcome <> 'waiting' RETURNING id)
		SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM inbound WHERE `+ofNumber+` AND (outcome IS NULL OR outcome = 'waiting'))`,
		formsOf(number)).Scan(&deleted, &pending)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("deleting the messages from a handset: %w", err)
	}
	rows, err := s.pool.Query(ctx, `DELETE FROM inbound_messages WHERE `+ofNumber+` RETURNING company_id, id`, formsOf(number))
	if err == nil {
		messages, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Ref])
	}
	if err != nil {
		return 0, 0, nil, fmt.Errorf("deleting the messages from a handset: %w", err)
	}
	return deleted, pending, messages, nil
}

// OptOutsOf returns the entries of a number in all companies' lists.
func (s *Store) OptOutsOf(ctx context.Context, number sms.Number) (map[sms.CompanyID][]OptOut, error) {
	rows, err := s.pool.Query(ctx, `SELECT company_id, id, phone_number, sender, source, created_at FROM opt_outs WHERE phone_number = $1 ORDER BY id`, string(number))
	if err != nil {
		return nil, fmt.Errorf("looking for the opt-outs of a number: %w", err)
	}
	found := map[sms.CompanyID][]OptOut{}
	var company sms.CompanyID
	var e OptOut
	if _, err := pgx.ForEachRow(rows, []any{&company, &e.ID, &e.Number, &e.Sender, &e.Source, &e.CreatedAt}, func() error {
		found[company] = append(found[company], e)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("looking for the opt-outs of a number: %w", err)
	}
	return found, nil
}
