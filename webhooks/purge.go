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
	trouble, last := false, int64(0)
	for pause := purgeEvery; wait(ctx, pause); {
		gone, err := w.purge(ctx, last)
		if err != nil && !trouble && ctx.Err() == nil {
			w.log.Error("old webhook deliveries cannot be deleted; trying again", "error", err)
		}
		trouble, pause = err != nil, purgeEvery
		if gone > last {
			last, pause = gone, purgePause
		}
	}
}

// purge deletes a batch of the oldest deliveries behind the number last that are older than
// Options.Retention, with their attempts and undelivered rows, and returns the number up to
// which none is left. Numbers are not exactly in the order of time: it ends at the first
// delivery that is too young.
func (w *Webhooks) purge(ctx context.Context, last int64) (gone int64, err error) {
	if err := w.pool.QueryRow(ctx, `
		WITH next AS MATERIALIZED (
			SELECT seq, at < now() - $2::interval AS old FROM webhook_deliveries WHERE seq > $1 ORDER BY seq LIMIT $3
		), gone AS (
			DELETE FROM webhook_deliveries d USING next WHERE d.seq = next.seq
				AND next.seq < coalesce((SELECT min(seq) FROM next WHERE NOT old), 9223372036854775807)
			RETURNING d.seq, d.company_id, d.id
		), attempts AS (
			DELETE FROM webhook_attempts a USING gone WHERE a.seq = gone.seq
		), undelivered AS (
			DELETE FROM webhook_undelivered u USING gone WHERE u.company_id = gone.company_id AND u.id = gone.id
		)
		SELECT coalesce(max(seq), 0) FROM gone`, last, w.opts.Retention, purgeBatch).Scan(&gone); err != nil {
		return 0, fmt.Errorf("deleting old webhook deliveries: %w", err)
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
