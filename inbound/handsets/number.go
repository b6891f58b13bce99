package handsets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// ofNumber selects MOs from or to a number, in the forms $1, by the indexes *_source and *_destination. Short codes and
// names are also addresses of companies: messages to them do not belong to a sender of the same name.
const ofNumber = `(source = ANY($1::text[]) OR length(destination) >= 8 AND destination = ANY($1::text[]) 
	AND destination !~ '[^+0-9]')`

// Named returns the national number of a text, "" for none, and the forms in which carriers write it, at least one.
// A text that is not a number has itself as its only form.
func Named(text string) (number sms.Number, forms []string) {
	text = strings.TrimSpace(postgres.Text(text))
	if number, ok := sms.FromCarrier(text); ok {
		digits := number.Digits()
		return number, []string{"+" + digits, digits, "00" + digits, strings.TrimPrefix(digits, "257"), text}
	}
	if digits := Address(text); digits != "" && len(digits) != 8 && strings.Trim(digits, "0123456789") == "" {
		// +79000000 is not 79000000
		return "", []string{"+" + digits, digits, "00" + digits, text}
	}
	return "", []string{text}
}

// Foreign returns the forms in which carriers write a foreign number; nil if the text is none.
func Foreign(text string) []string {
	if number, forms := Named(text); number == "" && len(forms) > 1 && len(forms[1]) > 8 {
		return forms
	}
	return nil
}

// InboundOf returns the MOs from or to a number, given its forms (Named).
func (s *Store) InboundOf(ctx context.Context, forms []string) ([]Inbound, error) {
	return s.inbounds(ctx, ofNumber+` ORDER BY id`, forms)
}

// Ref identifies a company's message.
type Ref struct{ CompanyID, ID int64 }

// EraseInbound deletes, in a transaction, the MOs from or to a number, given its forms (Named), and the companies'
// messages made of them; it returns how many MOs it deleted. It leaves, and counts as pending, MOs that are not routed
// yet and parts that wait for others (they may be a STOP), and the messages that events returns as undelivered; events
// is called once, with all the companies' messages. Opt-outs stay: the number's owner wanted them.
func (s *Store) EraseInbound(ctx context.Context, forms []string, events func([]Ref) (pending []int64, err error)) (
	deleted, pending int64, err error) {
	messages, err := postgres.All(ctx, s.pool, "looking for the messages from a handset", pgx.RowToStructByPos[Ref],
		`SELECT company_id, id FROM inbound_messages WHERE `+ofNumber+` ORDER BY id FOR UPDATE`, forms)
	if err != nil {
		return 0, 0, err
	}
	left, err := events(messages)
	if err != nil {
		return 0, 0, err
	}
	gone := []int64{}
	for _, m := range messages {
		if !slices.Contains(left, m.ID) {
			gone = append(gone, m.ID)
		}
	}
	// An MO that became a company's message meanwhile waits for the next call.
	err = s.pool.QueryRow(ctx, `WITH erased AS (DELETE FROM inbound_messages WHERE id = ANY($2)),
			unread AS (DELETE FROM read_marks WHERE phone_number = ANY($1) AND phone_number <> ''),
			gone AS (DELETE FROM inbound i WHERE `+ofNumber+
		` AND outcome <> 'waiting' AND (message_id IS NULL OR message_id = ANY($2)
				OR NOT EXISTS (SELECT FROM inbound_messages m WHERE m.id = i.message_id)) RETURNING id)
		SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM inbound WHERE `+ofNumber+
		` AND id NOT IN (SELECT id FROM gone)
			AND (message_id IS NULL OR message_id <> ALL($3)))`, forms, gone, append([]int64{}, left...)).Scan(
		&deleted, &pending)
	if err != nil {
		return 0, 0, fmt.Errorf("deleting the messages from a handset: %w", err)
	}
	return deleted, pending + int64(len(left)), nil
}

// optOutsOfNumber looks into one company's list after another, by the unique index.
const optOutsOfNumber = `WITH RECURSIVE lists AS (
		(SELECT company_id FROM opt_outs ORDER BY company_id LIMIT 1)
		UNION ALL
		SELECT n.company_id FROM lists l CROSS JOIN LATERAL (
			SELECT company_id FROM opt_outs WHERE company_id > l.company_id ORDER BY company_id LIMIT 1) n
	)
	SELECT o.company_id, o.id, o.phone_number, o.sender, o.source, o.created_at FROM lists l
	JOIN opt_outs o ON o.company_id = l.company_id AND o.phone_number = $1 ORDER BY o.company_id, o.id`

// OptOutsOf returns a number's entries in all companies' lists.
func (s *Store) OptOutsOf(ctx context.Context, number sms.Number) (map[sms.CompanyID][]OptOut, error) {
	found := map[sms.CompanyID][]OptOut{}
	var company sms.CompanyID
	var e OptOut
	err := postgres.Each(ctx, s.pool, "looking for the opt-outs of a number",
		[]any{&company, &e.ID, &e.Number, &e.Sender, &e.Source, &e.CreatedAt}, func() error {
			found[company] = append(found[company], e)
			return nil
		}, optOutsOfNumber, string(number))
	return found, err
}
