package webhooks

import (
	"context"
	"fmt"
	"time"
)

const (
	purgeEvery = time.Minute
	purgePause = 50 * time.Millisecond // between two batches, to leave the database to others
	purgeBatch = 1000
)

// runPurge deletes deliveries older than Options.Retention until ctx ends.
func (w *Webhooks) runPurge(ctx context.Context) {
	trouble := false
	for pause := purgeEvery; wait(ctx, pause); {
		gone, err := w.purge(ctx)
		if err != nil && !trouble && ctx.Err() == nil {
			w.log.Error("old webhook deliveries cannot be deleted; trying again", "event", "webhook_purge_failed", "error", err)
		}
		trouble, pause = err != nil, purgeEvery
		if gone > 0 {
			pause = purgePause
		}
	}
}

// purgeStatements delete old deliveries, $2 at most, by indexes: what was delivered, what was given up, and
// what waits for an endpoint that is switched off.
var purgeStatements = []string{
	`DELETE FROM webhook_delivered WHERE ctid = ANY(ARRAY(SELECT ctid FROM webhook_delivered WHERE at < now() - $1::interval ORDER BY at LIMIT $2))`,
	`DELETE FROM webhook_undelivered WHERE ctid = ANY(ARRAY(
		SELECT ctid FROM webhook_undelivered WHERE due = 'infinity' AND at < now() - $1::interval ORDER BY at LIMIT $2))`,
	`DELETE FROM webhook_undelivered WHERE ctid = ANY(ARRAY(
		SELECT u.place FROM webhook_endpoints e CROSS JOIN LATERAL (
			SELECT ctid AS place FROM webhook_undelivered
			WHERE company_id = e.company_id AND due < now() - $1::interval AND at < now() - $1::interval ORDER BY due LIMIT $2) u
		LIMIT $2))`,
}

// purge deletes a batch of the oldest deliveries that are older than Options.Retention, and
// returns how many it deleted.
func (w *Webhooks) purge(ctx context.Context) (gone int64, err error) {
	for _, statement := range purgeStatements {
		done, err := w.pool.Exec(ctx, statement, w.opts.Retention, purgeBatch)
		if err != nil {
			return gone, fmt.Errorf("deleting old webhook deliveries: %w", err)
		}
		gone += done.RowsAffected()
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
