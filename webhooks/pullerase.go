package webhooks

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Queries that find what consumers can fetch about a number ($1, its forms) without its messages.
const (
	// uses an index of these alone
	fetchedFrom = `SELECT company_id, id, phone_number, data FROM events WHERE phone_number = ANY($1::text[])
		AND data IS NOT NULL`
	fetchedTo = `SELECT e.company_id, e.id FROM event_readers r JOIN events e ON e.company_id = r.company_id
		AND e.id < ($2::bigint + 1) * 8
		WHERE e.phone_number = ANY($1::text[]) AND e.data IS NULL`
	fetchedOf = fetchedFrom + ` UNION SELECT e.company_id, e.id, e.phone_number, e.data
		FROM unnest($2::bigint[], $3::bigint[]) u(company_id, id)
		JOIN events e ON e.company_id = u.company_id AND e.id = u.id ORDER BY 1, 2`
)

// lockReaders locks what has to be locked before events of companies are changed.
func lockReaders(ctx context.Context, tx pgx.Tx, companies []int64) error {
	if _, err := tx.Exec(ctx, `SELECT FROM event_readers WHERE company_id = ANY($1) ORDER BY company_id FOR UPDATE`,
		companies); err != nil {
		return fmt.Errorf("locking events: %w", err)
	}
	return nil
}

// eraseFetched does for consumers' events about MOs what EraseReceived does for deliveries. It leaves those of pending
// messages, and returns how many it erased that are not among known.
func eraseFetched(ctx context.Context, tx pgx.Tx, companies, ids []int64, forms []string, by string, pending []int64,
	known []named) (erased int64, err error) {
	found, err := postgres.All(ctx, tx, "looking for the events of a number",
		func(row pgx.CollectableRow) (e storedEvent, err error) {
			err = row.Scan(&e.company, &e.id, &e.number, &e.data)
			return e, err
		}, fetchedOf, forms, companies, ids)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	b, owners := &pgx.Batch{}, []int64{}
	for i := range found {
		e := &found[i]
		if slices.Contains(pending, messageOf(e.id)) {
			continue
		}
		if err := e.obscure(forms, by); err != nil {
			return 0, err
		}
		b.Queue(`UPDATE events SET phone_number = $3, data = $4 WHERE company_id = $1 AND id = $2`, e.company, e.id, e.number,
			e.data)
		owners = append(owners, e.company)
		if !slices.ContainsFunc(known, func(d named) bool { return d.Company == e.company && d.ID == e.id }) {
			erased++
		}
	}
	if err := lockReaders(ctx, tx, owners); err != nil {
		return 0, err
	}
	return erased, tx.SendBatch(ctx, b).Close()
}

// fetchedNaming returns those of Naming's events that consumers can fetch and no endpoint gets.
func (w *Webhooks) fetchedNaming(ctx context.Context, forms []string, upTo int64) ([]Delivery, error) {
	return postgres.All(ctx, w.lookups, "reading events", func(row pgx.CollectableRow) (d Delivery, err error) {
		var e storedEvent
		err = row.Scan(&e.company, &e.id, &e.at, &e.number, &e.data, &e.labels)
		return deliveryOf(&e), err
	}, `SELECT d.company_id, d.id, d.at, d.phone_number, coalesce(d.data, ''), coalesce(d.labels, '')
		FROM (SELECT company_id, id FROM (`+fetchedFrom+`) f UNION `+fetchedTo+
		`) n JOIN events d ON d.company_id = n.company_id AND d.id = n.id
		WHERE NOT EXISTS (SELECT FROM webhook_deliveries w WHERE w.company_id = d.company_id AND w.id = d.id)
			AND NOT EXISTS (SELECT FROM webhook_called w WHERE w.company_id = d.company_id AND w.id = d.id) ORDER BY 3, 2`,
		forms, upTo)
}
