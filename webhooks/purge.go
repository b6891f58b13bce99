package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	purgeEvery = time.Minute
	purgePause = 50 * time.Millisecond // between two batches, to leave the database to others
	purgeBatch = 1000
	purgeParts = 24 * 60 // of webhook_delivered: each minute reads one
)

// runPurge deletes deliveries older than Options.Retention until ctx ends, at most a day later.
func (w *Webhooks) runPurge(ctx context.Context) {
	trouble, part := false, time.Now().Unix()/60%purgeParts
	for pause := purgeEvery; wait(ctx, pause); {
		gone, err := w.purge(ctx, part, purgeParts)
		if err != nil && !trouble && ctx.Err() == nil {
			w.log.Error("old webhook deliveries cannot be deleted; trying again", "event", "webhook_purge_failed", "error", err)
		}
		trouble, pause = err != nil, purgeEvery
		switch {
		case gone > 0:
			pause = purgePause
		case err == nil:
			part = (part + 1) % purgeParts
		}
	}
}

// purgeDelivered deletes old deliveries, $2 at most, of the part $3 of the table ($4). An index on at would cost every delivery
// more of the write-ahead log than its deletion does.
const purgeDelivered = `
	WITH part AS (
		SELECT format('(%s,0)', size * $3 / $4)::tid AS first, format('(%s,0)', (size * ($3 + 1) + $4 - 1) / $4)::tid AS next
		FROM (SELECT pg_relation_size('webhook_delivered') / current_setting('block_size')::int AS size) s
	)
	DELETE FROM webhook_delivered WHERE ctid = ANY(ARRAY(SELECT ctid FROM webhook_delivered
		WHERE ctid >= (SELECT first FROM part) AND ctid < (SELECT next FROM part) AND at < now() - $1::interval LIMIT $2))`

// purgeStatements delete old deliveries, $2 at most, by indexes: what was given up, and what waits for an endpoint that is
// switched off.
var purgeStatements = []string{
	`DELETE FROM webhook_undelivered WHERE ctid = ANY(ARRAY(
		SELECT ctid FROM webhook_undelivered WHERE due = 'infinity' AND at < now() - $1::interval ORDER BY at LIMIT $2))`,
	`DELETE FROM webhook_undelivered WHERE ctid = ANY(ARRAY(
		SELECT u.place FROM webhook_endpoints e CROSS JOIN LATERAL (
			SELECT ctid AS place FROM webhook_undelivered
			WHERE company_id = e.company_id AND due < now() - $1::interval AND at < now() - $1::interval ORDER BY due LIMIT $2) u
		LIMIT $2))`,
}

// purge deletes a batch of the deliveries that are older than Options.Retention, of those that were delivered in one of the parts of
// their table, and returns how many it deleted.
func (w *Webhooks) purge(ctx context.Context, part, parts int64) (gone int64, err error) {
	b := &pgx.Batch{}
	count := func(done pgconn.CommandTag) error { gone += done.RowsAffected(); return nil }
	b.Queue(purgeDelivered, w.opts.Retention, purgeBatch, part, parts).Exec(count)
	for _, statement := range purgeStatements {
		b.Queue(statement, w.opts.Retention, purgeBatch).Exec(count)
	}
	if err := w.pool.SendBatch(ctx, b).Close(); err != nil {
		return gone, fmt.Errorf("deleting old webhook deliveries: %w", err)
	}
	return gone, nil
}

// wait returns true after a pause, and false as soon as ctx ends.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
