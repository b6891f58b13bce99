package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Subject is a message that events were about.
type Subject struct{ CompanyID, MessageID int64 }

// Erase replaces the number in the stored events about messages by another text. It also removes the customer's
// reference and the endpoints' responses, which may repeat the number. It leaves messages with a pending event alone
// and returns them: the endpoint still gets the promised event. A later manual re-send has the other text.
func Erase(ctx context.Context, tx pgx.Tx, subjects []Subject, by string) (pending []int64, err error) {
	var companies, ids []int64
	for _, s := range subjects {
		companies, ids = append(companies, s.CompanyID, s.CompanyID), append(ids, s.MessageID*idSpan, s.MessageID*idSpan+1)
		own := callbacksOf(s.CompanyID)
		companies, ids = append(companies, own, own),
			append(ids, s.MessageID*idSpan+firstCallback, s.MessageID*idSpan+firstCallback+1)
	}
	deliveries, err := postgres.All(ctx, tx, fmt.Sprintf("looking for the events of %d messages", len(subjects)),
		pgx.RowToStructByPos[named], `
		SELECT d.company_id, d.id, `+stillNeeded+`
		FROM unnest($1::bigint[], $2::bigint[]) u(company_id, id) JOIN webhook_deliveries d ON d.company_id = u.company_id
		AND d.id = u.id
		UNION ALL
		SELECT d.company_id, d.id, true FROM webhook_called d WHERE (d.company_id, d.id) IN (SELECT *
			FROM unnest($1::bigint[], $2::bigint[]))
		ORDER BY 1, 2`, companies, ids)
	if err != nil {
		return nil, err
	}
	for _, d := range deliveries {
		if d.Waits {
			pending = append(pending, messageOf(d.ID))
		}
	}
	deliveries = slices.DeleteFunc(deliveries, func(d named) bool { return slices.Contains(pending, messageOf(d.ID)) })
	for i, id := range ids { // events that companies fetch, also without an endpoint
		if companies[i] > 0 && !slices.Contains(pending, messageOf(id)) {
			deliveries = append(deliveries, named{Company: companies[i], ID: id})
		}
	}
	return pending, obscure(ctx, tx, deliveries, by)
}

// named is a delivery whose event names a number.
type named struct {
	Company, ID int64
	Waits       bool // still pending
}

// EraseReceived replaces a number, in any of its forms, by another text in the stored events about MOs. It also removes
// the message text and the endpoints' responses. It covers the events of the subjects and all events with the number as
// sender, even if the message itself is gone. Like Erase, it leaves messages with a pending event alone and returns
// them. A later manual re-send lacks what was removed.
func EraseReceived(ctx context.Context, tx pgx.Tx, subjects []Subject, forms []string, by string) (
	erased int64, pending []int64, err error) {
	companies, ids := make([]int64, len(subjects)), make([]int64, len(subjects))
	for i, s := range subjects {
		companies[i] = s.CompanyID
		if ids[i], err = deliveryID(s.MessageID, Received); err != nil {
			return 0, nil, fmt.Errorf("erasing events: %w", err)
		}
	}
	b := &pgx.Batch{}
	var e storedEvent
	var waits bool
	var found []named
	err = postgres.Each(ctx, tx, "looking for the events of a number",
		[]any{&e.company, &e.id, &e.number, &e.data, &waits}, func() error {
			if waits {
				pending = append(pending, messageOf(e.id))
				return nil
			}
			if err := e.obscure(forms, by); err != nil {
				return err
			}
			b.Queue(`UPDATE webhook_deliveries SET phone_number = $3, data = $4, attempts = `+withoutAnswers+`
			WHERE company_id = $1 AND id = $2`, e.company, e.id, e.number, e.data)
			found = append(found, named{Company: e.company, ID: e.id})
			return nil
		}, receivedOf, forms, companies, ids)
	if err == nil && len(found) > 0 {
		err = tx.SendBatch(ctx, b).Close()
	}
	var more int64
	if err == nil {
		more, err = eraseFetched(ctx, tx, companies, ids, forms, by, pending, found)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("erasing a number from events: %w", err)
	}
	return int64(len(found)) + more, pending, nil
}

// obscure replaces a number, in any of its forms, in an event about an MO, and removes its text; or in one about a
// verification, and removes the customer's reference.
func (e *storedEvent) obscure(forms []string, by string) error {
	if eventName(e.id) == VerificationFinished {
		var data VerificationFinishedData
		err := json.Unmarshal([]byte(e.data), &data)
		e.number, data.PhoneNumber, data.Reference = by, by, ""
		e.data = string(jsonOf(data))
		return err
	}
	var data ReceivedData
	if err := json.Unmarshal([]byte(e.data), &data); err != nil {
		return err
	}
	for _, place := range []*string{&e.number, &data.From, &data.To} {
		if slices.Contains(forms, *place) {
			*place = by
		}
	}
	data.Message = nil
	e.data = string(jsonOf(data))
	return nil
}

// ErasePurged is Erase for events about messages to a number that are already deleted: those with ids up to upTo. It
// returns how many events it erased, and how many are still pending.
func ErasePurged(ctx context.Context, tx pgx.Tx, number string, upTo int64, by string) (erased, pending int64,
	err error) {
	deliveries, err := postgres.All(ctx, tx, "looking for the events of messages that are deleted",
		pgx.RowToStructByPos[named],
		purgedOf, []string{number}, upTo)
	if err != nil {
		return 0, 0, err
	}
	fetched, err := postgres.All(ctx, tx, "looking for the events of messages that are deleted",
		func(row pgx.CollectableRow) (d named, err error) {
			err = row.Scan(&d.Company, &d.ID)
			return d, err
		}, fetchedTo, []string{number}, upTo)
	if err != nil {
		return 0, 0, err
	}
	for _, each := range fetched {
		if !slices.ContainsFunc(deliveries, func(d named) bool { return d.Company == each.Company && d.ID == each.ID }) {
			deliveries = append(deliveries, each)
		}
	}
	all := len(deliveries)
	deliveries = slices.DeleteFunc(deliveries, func(d named) bool { return d.Waits })
	return int64(len(deliveries)), int64(all - len(deliveries)), obscure(ctx, tx, deliveries, by)
}

// Naming returns the deliveries whose events contain a number, in any of its forms, and that no message leads to: MOs
// from it, and deleted messages to it with ids up to upTo.
func (w *Webhooks) Naming(ctx context.Context, forms []string, upTo int64) ([]Delivery, error) {
	all, err := w.deliveries(ctx, namingOf, forms, upTo)
	if err != nil {
		return nil, err
	}
	more, err := w.fetchedNaming(ctx, forms, upTo)
	return append(all, more...), err
}

// Queries that find the events of a number ($1, its forms) without its messages. A separate query reads each delivery
// (LATERAL, OFFSET 0). In a join the planner overestimates how many there are and reads the whole table. A delivery
// that moves to another partition while FOR UPDATE waits for it is not found there, nor is one in webhook_first_calls:
// it was still pending.
const (
	// uses an index of these alone
	receivedFrom = `SELECT r.company_id, r.id FROM webhook_deliveries r WHERE r.phone_number = ANY($1::text[])
		AND r.data IS NOT NULL`
	// Company by company. It reads as many deliveries as outlive their messages ($2 is the last deleted message).
	purgedTo = `SELECT p.company_id, p.id FROM webhook_endpoints e JOIN webhook_deliveries p ON p.company_id = e.company_id
		AND p.id < ($2::bigint + 1) * 8
		WHERE p.phone_number = ANY($1::text[]) AND p.data IS NULL`
	eachOf = ` n(company_id, id) LEFT JOIN LATERAL (SELECT * FROM webhook_deliveries w
		WHERE w.company_id = n.company_id AND w.id = n.id `
	stillNeeded = `(d.id IS NULL OR ` + pendingDelivery + `)`

	receivedOf = `SELECT n.company_id, n.id, coalesce(d.phone_number, ''), coalesce(d.data, ''), ` + stillNeeded + `
		FROM (` + receivedFrom + ` UNION SELECT u.* FROM unnest($2::bigint[], $3::bigint[]) u(company_id, id)
			WHERE EXISTS (SELECT FROM webhook_deliveries e WHERE e.company_id = u.company_id AND e.id = u.id)
		UNION SELECT c.company_id, c.id FROM webhook_called c WHERE c.phone_number = ANY($1) AND c.data IS NOT NULL
			OR (c.company_id, c.id) IN (SELECT * FROM unnest($2, $3)) ORDER BY 1, 2)` + eachOf + `FOR UPDATE) d ON true`
	purgedOf = `SELECT n.company_id, n.id, ` + stillNeeded + ` FROM (` + purgedTo + ` ORDER BY 1, 2)` + eachOf +
		`FOR UPDATE) d ON true`
	namingOf = deliveryColumns + ` FROM (` + receivedFrom + ` UNION ` + purgedTo + `)` + eachOf + `OFFSET 0) d ON true
		UNION ALL ` + deliveryColumns + ` FROM webhook_called d WHERE d.phone_number = ANY($1) AND d.data IS NOT NULL
			ORDER BY 3, 2`

	// withoutAnswers are the attempts without the endpoint's responses.
	withoutAnswers = `(SELECT json_agg(a::jsonb - 'excerpt') FROM json_array_elements(attempts) a)`
)

// obscure replaces the number of deliveries by another text.
func obscure(ctx context.Context, tx pgx.Tx, deliveries []named, by string) error {
	companies, ids := make([]int64, len(deliveries)), make([]int64, len(deliveries))
	for i, d := range deliveries {
		companies[i], ids[i] = d.Company, d.ID
	}
	if _, err := tx.Exec(ctx, `
		UPDATE webhook_deliveries d SET phone_number = $3, labels = NULL, callback = split_part(callback, ' ', 1),
			attempts = `+withoutAnswers+`
		FROM unnest($1::bigint[], $2::bigint[]) n(company_id, id) WHERE d.company_id = n.company_id AND d.id = n.id`,
		companies, ids, by); err != nil {
		return fmt.Errorf("erasing a number from %d events: %w", len(ids), err)
	}
	if err := lockReaders(ctx, tx, companies); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE events d SET phone_number = $3, labels = NULL
		FROM unnest($1::bigint[], $2::bigint[]) n(company_id, id) WHERE d.company_id = n.company_id AND d.id = n.id
		AND d.data IS NULL`, companies, ids, by); err != nil {
		return fmt.Errorf("erasing a number from %d events: %w", len(ids), err)
	}
	return nil
}
