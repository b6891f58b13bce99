package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	forgetEvery = time.Minute
	forgetPause = 50 * time.Millisecond // between two batches, to leave the database to others
	forgetBatch = 1000
)

// deleteOld deletes deliveries older than Options.Retention until ctx ends.
func (w *Webhooks) deleteOld(ctx context.Context) {
	trouble, last := false, int64(0)
	for pause := forgetEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = forgetEvery
		gone, err := w.deleteBatch(ctx, last)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !trouble:
			w.log.Error("old webhook deliveries cannot be deleted; trying again", "error", err)
		}
		trouble = err != nil
		if gone > last {
			last, pause = gone, forgetPause
		}
	}
}

// deleteBatch deletes a batch of the oldest deliveries behind the number last that are
// older than Options.Retention, with their attempts and undelivered rows, and returns
// the number up to which none is left.
func (w *Webhooks) deleteBatch(ctx context.Context, last int64) (gone int64, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		// Numbers are not exactly in the order of time; it ends at the first delivery that
		// is too young.
		rows, err := tx.Query(ctx, `
			SELECT seq, company_id, id, at < now() - $2::interval FROM webhook_deliveries
			WHERE seq > $1 ORDER BY seq LIMIT $3`, last, w.opts.Retention, forgetBatch)
		if err != nil {
			return err
		}
		var seqs, companies, ids []int64
		var seq, company, id int64
		var old bool
		ended := false
		_, err = pgx.ForEachRow(rows, []any{&seq, &company, &id, &old}, func() error {
			if ended = ended || !old; !ended {
				seqs, companies, ids = append(seqs, seq), append(companies, company), append(ids, id)
			}
			return nil
		})
		if err != nil || len(seqs) == 0 {
			return err
		}
		gone = seqs[len(seqs)-1]
		if _, err = tx.Exec(ctx, `DELETE FROM webhook_attempts WHERE seq > $1 AND seq <= $2`, last, gone); err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, `
			DELETE FROM webhook_undelivered u USING unnest($1::bigint[], $2::bigint[]) AS o(company_id, id)
			WHERE u.company_id = o.company_id AND u.id = o.id`, companies, ids); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM webhook_deliveries WHERE seq > $1 AND seq <= $2`, last, gone)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forgetting old webhook deliveries: %w", err)
	}
	return gone, nil
}
