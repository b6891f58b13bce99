package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	forgetEvery = time.Minute
	forgetRest  = 50 * time.Millisecond // between two batches, so that the others hardly notice
	forgetBatch = 1000
)

// forgetAll forgets what is older than Options.Retention while this process is
// the one that delivers, until ctx ends.
func (d *deliverer) forgetAll(ctx context.Context) {
	trouble, last := false, int64(0)
	for pause := forgetEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = forgetEvery
		if !d.delivering() {
			last = 0
			continue
		}
		gone, err := d.forget(ctx, last)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !trouble:
			d.log.Error("old webhook deliveries cannot be deleted; trying again", "error", err)
		}
		trouble = err != nil
		if gone > last {
			last, pause = gone, forgetRest
		}
	}
}

// forget deletes a batch of the oldest deliveries behind the number last, with
// their attempts and whatever became of them, if they are older than
// Options.Retention, and answers the number up to which there are none.
func (w *Webhooks) forget(ctx context.Context, last int64) (gone int64, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		// In the order of numbers old and young may be mixed by seconds: it ends at
		// the first young one.
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
