package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Subject is a message that events were about.
type Subject struct{ CompanyID, MessageID int64 }

// Erase replaces the number in what is kept of events about messages by another text,
// and removes the customer's reference and what endpoints answered, which may repeat it. Messages of which an event
// is still to be delivered are left alone and returned: the endpoint gets what was
// promised. What is sent again by hand afterwards bears the other text.
func Erase(ctx context.Context, tx pgx.Tx, subjects []Subject, by string) (pending []int64, err error) {
	var companies, ids []int64
	for _, s := range subjects {
		for _, event := range [...]int64{0, 1} {
			companies, ids = append(companies, s.CompanyID), append(ids, s.MessageID*8+event)
		}
	}
	rows, err := tx.Query(ctx, `SELECT d.seq, d.company_id, d.id, d.seq > o.read OR EXISTS (
				SELECT FROM webhook_undelivered w WHERE w.company_id = d.company_id AND w.id = d.id AND w.due < 'infinity')
		FROM unnest($1::bigint[], $2::bigint[]) u(company_id, id) JOIN webhook_deliveries d ON d.company_id = u.company_id AND d.id = u.id
		CROSS JOIN webhook_owner o ORDER BY d.company_id, d.id`, companies, ids)
	if err != nil {
		return nil, fmt.Errorf("looking for the events of %d messages: %w", len(subjects), err)
	}
	type delivery struct {
		Seq, Company, ID int64
		Waits            bool
	}
	deliveries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[delivery])
	if err != nil {
		return nil, fmt.Errorf("looking for the events of %d messages: %w", len(subjects), err)
	}
	for _, d := range deliveries {
		if d.Waits {
			pending = append(pending, d.ID/8)
		}
	}
	var seqs []int64
	for _, d := range deliveries {
		if !slices.Contains(pending, d.ID/8) {
			seqs = append(seqs, d.Seq)
		}
	}
	b := &pgx.Batch{}
	b.Queue(`UPDATE webhook_deliveries SET phone_number = $2, client_reference = NULL WHERE seq = ANY($1)`, seqs, by)
	b.Queue(`UPDATE webhook_attempts SET excerpt = NULL WHERE seq = ANY($1)`, seqs)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("erasing a number from %d events: %w", len(seqs), err)
	}
	return pending, nil
}

// EraseReceived replaces the number in what is kept of events about messages from
// handsets by another text, and removes what they said and what endpoints answered.
// Messages of which the event is still to be delivered are left alone and returned, as
// by Erase. What is sent again by hand afterwards goes out without them.
func EraseReceived(ctx context.Context, tx pgx.Tx, subjects []Subject, by string) (pending []int64, err error) {
	for _, s := range subjects {
		id, err := deliveryID(s.MessageID, Received)
		if err != nil {
			return nil, fmt.Errorf("erasing an event: %w", err)
		}
		var seq int64
		var text string
		var waits bool
		err = tx.QueryRow(ctx, `SELECT d.seq, d.data, d.seq > o.read OR EXISTS (
				SELECT FROM webhook_undelivered w WHERE w.company_id = d.company_id AND w.id = d.id AND w.due < 'infinity')
			FROM webhook_deliveries d CROSS JOIN webhook_owner o WHERE d.company_id = $1 AND d.id = $2 FOR UPDATE OF d`, s.CompanyID, id).Scan(&seq, &text, &waits)
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		if err == nil && waits {
			pending = append(pending, s.MessageID)
			continue
		}
		var data ReceivedData
		if err == nil {
			err = json.Unmarshal([]byte(text), &data)
		}
		if err != nil {
			return nil, fmt.Errorf("erasing an event: %w", err)
		}
		data.From, data.Message = by, nil
		if text, err = dataOf(data); err != nil {
			return nil, fmt.Errorf("erasing an event: %w", err)
		}
		b := &pgx.Batch{}
		b.Queue(`UPDATE webhook_deliveries SET phone_number = $2, data = $3 WHERE seq = $1`, seq, by, text)
		b.Queue(`UPDATE webhook_attempts SET excerpt = NULL WHERE seq = $1`, seq)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return nil, fmt.Errorf("erasing an event: %w", err)
		}
	}
	return pending, nil
}
