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
	purgeParts = 20 * 60 // of webhook_delivered: one a minute plus its deletions, all of them in less than a day
	day        = 24 * time.Hour
)

// runPurge deletes deliveries older than Options.Retention until ctx ends, at most a day late. A new process continues
// where one that ran all day would be, so restarts skip no block.
func (c *core) runPurge(ctx context.Context) {
	trouble, block, events := false, int64(-1), eventPurge{-1}
	for pause := purgeEvery; wait(ctx, pause); {
		gone, next, err := c.purge(ctx, block, purgeParts)
		if err == nil {
			var old int64
			old, err = events.next(ctx, c, purgeParts)
			gone = max(gone, old)
		}
		if err != nil && !trouble && ctx.Err() == nil {
			c.log.Error("old webhook deliveries cannot be deleted; trying again", "event", "webhook_purge_failed", "error", err)
		}
		trouble, block, pause = err != nil, next, purgeEvery
		if gone >= purgeBatch { // maybe more; only a few become old at any moment
			pause = purgePause
		}
	}
}

// purgeDelivered deletes at most $2 old deliveries from blocks $3 to before $4. An index on at would cost each delivery
// more WAL than its deletion does.
const purgeDelivered = `
	DELETE FROM webhook_delivered WHERE ctid = ANY(ARRAY(SELECT ctid FROM webhook_delivered
		WHERE ctid >= format('(%s,0)', $3::bigint)::tid AND ctid < format('(%s,0)', $4::bigint)::tid
		AND at < now() - $1::interval LIMIT $2))`

// purgeStatements delete at most $2 old deliveries each, by index: those given up, and those that wait for an inactive
// endpoint. DELETE has no LIMIT: the rows are found first, and deleted by their addresses (ctid). PostgreSQL before
// 13.23, 14.20, 15.15, 16.11 and 17.7 then takes the row's latest version, so the outer conditions keep one that is due
// again; no index serves them.
var purgeStatements = []string{
	`DELETE FROM webhook_undelivered WHERE ctid = ANY(ARRAY(
		SELECT ctid FROM webhook_undelivered WHERE due = 'infinity' AND at < now() - $1::interval ORDER BY at LIMIT $2))
		AND NOT isfinite(due)`,
	`DELETE FROM webhook_undelivered WHERE ctid = ANY(ARRAY(
		SELECT u.place FROM webhook_endpoints e CROSS JOIN LATERAL (
			SELECT ctid AS place FROM webhook_undelivered
			WHERE company_id = e.company_id AND due < now() - $1::interval AND at < now() - $1::interval ORDER BY due LIMIT $2) u
		LIMIT $2)) AND due + $1::interval < now()`,
}

// purge deletes a batch of deliveries older than Options.Retention. Of the delivered ones it covers a part of their
// table from a block on (negative: a block by the time of day). It returns how many it deleted, and the block where the
// next call begins: a block rather than a fraction, because the table grows meanwhile.
func (c *core) purge(ctx context.Context, block, parts int64) (gone, next int64, err error) {
	var size int64
	if err := c.pool.QueryRow(
		ctx, `SELECT pg_relation_size('webhook_delivered') / current_setting('block_size')::int`).Scan(&size); err != nil {
		return 0, block, fmt.Errorf("deleting old webhook deliveries: %w", err)
	}
	if block < 0 {
		block = size * (time.Now().Unix() % int64(day/time.Second)) / int64(day/time.Second)
	}
	next = block + size/parts + 1
	b, full := &pgx.Batch{}, false
	count := func(done pgconn.CommandTag) error { gone += done.RowsAffected(); return nil }
	b.Queue(purgeDelivered, c.opts.Retention, purgeBatch, block, next).Exec(func(done pgconn.CommandTag) error {
		full = done.RowsAffected() == purgeBatch
		return count(done)
	})
	for _, statement := range purgeStatements {
		b.Queue(statement, c.opts.Retention, purgeBatch).Exec(count)
	}
	if err := c.pool.SendBatch(ctx, b).Close(); err != nil {
		return gone, block, fmt.Errorf("deleting old webhook deliveries: %w", err)
	}
	switch {
	case full:
		next = block
	case next >= size:
		next = 0
	}
	return gone, next, nil
}
