package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
)

// watchedFrom is how far back a company's batches are looked for: longer than any transaction that accepts one takes.
// So a batch is found however late it is committed, and when a company begins to ask, those of the time before count
// too.
const watchedFrom = 10 * time.Minute

// finishedAtOnce limits the batches of one call of FinishedBatches.
const finishedAtOnce = 50

// FinishedBatch is a batch whose messages are all final, and to which no part will be added.
type FinishedBatch struct {
	Number    int64 // of the event, from the sequence of messages
	CompanyID int64
	ULID      ulid.ULID
	At        time.Time

	Recipients, Sent, Failed int
	Cancelled                int // of the failed ones
	LeftOut                  map[string]int
}

// FinishedBatches returns batches of these companies that have finished, each of them once: it notes them in tx.
// Batches of other companies are forgotten. It looks at one message of each open batch, and at all of a batch's only
// when that one has become final: the last that was pending before.
func FinishedBatches(ctx context.Context, tx pgx.Tx, companies []int64) ([]FinishedBatch, error) {
	companies = append([]int64{}, companies...) // nil would be NULL
	b := &pgx.Batch{}
	b.Queue(`DELETE FROM batch_watches WHERE company_id <> ALL($1)`, companies)
	b.Queue(`DELETE FROM batch_askers WHERE company_id <> ALL($1)`, companies)
	b.Queue(`INSERT INTO batch_askers (company_id, up_to)
		SELECT c, coalesce((SELECT id FROM batches WHERE company_id = c AND created_at < now() - $2::interval ORDER BY id DESC
			LIMIT 1), 0) FROM unnest($1::bigint[]) c
		WHERE NOT EXISTS (SELECT FROM batch_askers a WHERE a.company_id = c) ORDER BY c ON CONFLICT DO NOTHING`, companies,
		watchedFrom)
	b.Queue(`INSERT INTO batch_watches (batch_id, company_id, created_at)
		SELECT b.id, b.company_id, b.created_at FROM batch_askers a JOIN batches b ON b.company_id = a.company_id
			AND b.id > a.up_to
		WHERE NOT EXISTS (SELECT FROM batch_watches w WHERE w.batch_id = b.id) ORDER BY b.id ON CONFLICT DO NOTHING`)
	b.Queue(`UPDATE batch_askers a SET up_to = w.up_to
		FROM (SELECT company_id, max(batch_id) AS up_to FROM batch_watches WHERE created_at < now() - $1::interval
		GROUP BY company_id) w
		WHERE w.company_id = a.company_id AND w.up_to > a.up_to`, watchedFrom)
	b.Queue(`DELETE FROM batch_watches w USING batch_askers a WHERE a.company_id = w.company_id AND w.batch_id <= a.up_to
		AND (w.told OR NOT EXISTS (SELECT FROM batches b WHERE b.id = w.batch_id))`)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("watching batches: %w", err)
	}
	return postgres.All(ctx, tx, "looking for finished batches",
		func(row pgx.CollectableRow) (f FinishedBatch, err error) {
			var id pgtype.UUID
			err = row.Scan(&f.Number, &f.CompanyID, &id, &f.At, &f.Recipients, &f.Sent, &f.Failed, &f.Cancelled, &f.LeftOut)
			f.ULID = id.Bytes
			return f, err
		}, `
		WITH maybe AS MATERIALIZED (
			SELECT w.batch_id, (SELECT max(m.id + 0) FROM messages m WHERE m.batch_id = w.batch_id AND m.status = 0) AS pending
				FROM ( -- + 0: by messages_batch, 3 pages; by the index of id it may read all (8,248 pages of 200,000 messages)
				SELECT w.batch_id FROM batch_watches w JOIN batches b ON b.id = w.batch_id AND b.awaited = 0
				WHERE NOT w.told AND NOT EXISTS (SELECT FROM messages m WHERE m.id = w.pending AND m.status = 0)
				ORDER BY w.batch_id LIMIT $1) w
		), looked AS (
			UPDATE batch_watches w SET pending = maybe.pending, told = maybe.pending IS NULL
			FROM maybe WHERE w.batch_id = maybe.batch_id AND NOT w.told RETURNING w.batch_id, w.told
		)
		SELECT nextval('messages_id_seq'), b.company_id, b.ulid, now(), b.recipients_count, c.sent, c.failed, c.cancelled,
			b.left_out
		FROM looked JOIN batches b ON b.id = looked.batch_id AND looked.told CROSS JOIN LATERAL (
			SELECT count(*) FILTER (WHERE status = 1) AS sent, count(*) FILTER (WHERE status = 2) AS failed,
				count(*) FILTER (WHERE failure_reason = $2) AS cancelled
			FROM messages m WHERE m.batch_id = b.id) c
		ORDER BY b.id`, finishedAtOnce, ReasonCancelled)
}
