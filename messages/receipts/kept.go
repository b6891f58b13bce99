package receipts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
)

// noticesKept is how many receipts that settle nothing are kept of a message,
// for each of its segments. No carrier has more to say.
const noticesKept = 8

// keepRest files the receipts that settled nothing: of those that no segment was
// found for so many as there is room for.
func (r *reports) keepRest(ctx context.Context, tx pgx.Tx, carrier string) error {
	var n []int32
	var keys, links []string
	var handsets []*int32
	var verify []bool
	for i, one := range r.receipts {
		if r.outcomes[i] != "" {
			continue
		}
		n, keys, handsets = append(n, int32(i)), append(keys, one.key), append(handsets, one.handset)
		links, verify = append(links, one.Link), append(verify, one.verify)
	}
	if len(n) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
		SELECT u.n, p.message_id, p.state, $7::int * p.total - (SELECT count(*) FROM (
			SELECT FROM receipts k WHERE k.message_id = p.message_id LIMIT $7::int * p.total) kept)
		FROM unnest($2::int[], $3::text[], $4::int[], $5::text[], $6::boolean[]) u(n, key, handset, link, verify)
		CROSS JOIN LATERAL (
			SELECT c.message_id, c.state, c.total FROM segments c
			WHERE c.key = u.key AND u.key <> '' AND c.carrier = $1
				AND (u.handset IS NULL OR c.handset = u.handset OR (NOT u.verify AND c.link = u.link))
			ORDER BY coalesce(c.handset = u.handset, false) DESC, c.link = u.link DESC, c.submitted_at DESC LIMIT 1
		) p`, carrier, n, keys, handsets, links, verify, noticesKept)
	if err != nil {
		return fmt.Errorf("looking up the segments of receipts: %w", err)
	}
	type segment struct {
		message int64
		state   *int16
	}
	segments := make(map[int32]segment, len(n))
	notices := make(map[int64]int64) // message -> how many more are kept of it
	var i int32
	var message, more int64
	var state *int16
	if _, err := pgx.ForEachRow(rows, []any{&i, &message, &state, &more}, func() error {
		segments[i] = segment{message, state}
		notices[message] = more
		return nil
	}); err != nil {
		return fmt.Errorf("looking up the segments of receipts: %w", err)
	}

	batch := &pgx.Batch{}
	for _, i := range n {
		one := &r.receipts[i]
		seg, found := segments[i]
		var message *int64
		switch {
		case !found && r.room <= 0:
			r.outcomes[i] = Throttled
			continue
		case !found:
			r.outcomes[i] = Unmatched
			r.room--
		case !one.Final:
			r.outcomes[i], message = Intermediate, &seg.message
		case seg.state != nil && *seg.state != int16(one.Status):
			r.outcomes[i], message = Contradiction, &seg.message
		default:
			r.outcomes[i] = Duplicate // counted, not kept: carriers send them by the dozen
			continue
		}
		if message != nil {
			if notices[*message]--; notices[*message] < 0 {
				continue
			}
		}
		one.keep(batch, carrier, message, r.outcomes[i])
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("keeping %d receipts: %w", batch.Len(), err)
	}
	return nil
}

// keep adds to a pipeline what keeps a receipt, of a message or, without, in the inbox.
func (r *reported) keep(b *pgx.Batch, carrier string, message *int64, outcome Outcome) {
	var status *int16
	if r.Final {
		v := int16(r.Status)
		status = &v
	}
	key := r.key
	var reference *int32
	if r.Reference != nil {
		v := int32(*r.Reference)
		reference = &v
		if key == "" { // all that names it
			key = referenceKey(*r.Reference)
		}
	}
	b.Queue(`INSERT INTO receipts (carrier, link, key, carrier_id, number, handset, state, status, error, message_id, outcome, reference)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (key, carrier, state, number, carrier_id) WHERE message_id IS NULL
			DO UPDATE SET received_at = now(), link = excluded.link, status = excluded.status, error = excluded.error, reference = excluded.reference`,
		carrier, r.Link, key, postgres.Text(r.CarrierID), postgres.Text(r.Number), r.handset, postgres.Text(r.State), status,
		postgres.Text(r.Error), message, string(outcome), reference)
}

// forgetLimit bounds what one call forgets.
const forgetLimit = 20_000

// Forget deletes receipts older than life, up to 20,000 a call, and
// answers how many: those of the inbox and those kept beside a message.
func Forget(ctx context.Context, pool *pgxpool.Pool, life time.Duration) (int64, error) {
	tag, err := pool.Exec(ctx, `DELETE FROM receipts WHERE id IN (
		SELECT id FROM receipts WHERE received_at < now() - $1::interval ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, life, forgetLimit)
	if err != nil {
		return 0, fmt.Errorf("forgetting receipts: %w", err)
	}
	return tag.RowsAffected(), nil
}
