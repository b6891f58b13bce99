package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

const (
	recoverBatch = 500                    // deliveries of one statement
	recoverPause = 200 * time.Millisecond // between two batches, of all recoveries
	recoverIdle  = time.Second            // between looks for recoveries
	foundAtMost  = 1_000_000              // counted when a recovery begins
)

// Recovery is a company's request to send again all deliveries that were given up, and
// its progress.
type Recovery struct {
	ID         int64
	CompanyID  sms.CompanyID
	Since      time.Time // of events recorded then or later
	StartedAt  time.Time
	FinishedAt *time.Time // nil: under way
	Found      int64      // deliveries given up when it began; counted up to a million
	Resent     int64
}

const recoveryColumns = `id, company_id, since, started_at, finished_at, found, resent`

// Recover starts to send again all deliveries of a company that were given up until
// now, of events recorded at since or later. The processes that run Run do it in
// batches; RecoveryOf returns the progress. A company has at most one recovery at a
// time: while one is under way, Recover returns it with begun false.
func (w *Webhooks) Recover(ctx context.Context, company sms.CompanyID, since time.Time) (r Recovery, begun bool, err error) {
	if !company.Valid() {
		return Recovery{}, false, fmt.Errorf("recovering webhooks: %w", ErrNotFound)
	}
	rows, err := w.pool.Query(ctx, `
		INSERT INTO webhook_recoveries (company_id, since, found)
		SELECT $1, $2, count(*) FROM (
			SELECT FROM webhook_undelivered u JOIN webhook_deliveries d ON d.company_id = u.company_id AND d.id = u.id
			WHERE u.company_id = $1 AND u.due = 'infinity' AND d.at >= $2
				AND NOT EXISTS (SELECT FROM webhook_recoveries WHERE company_id = $1 AND finished_at IS NULL) -- whoever asks again has nothing counted
			LIMIT $3) f
		ON CONFLICT (company_id) WHERE finished_at IS NULL DO NOTHING
		RETURNING `+recoveryColumns, int64(company), since, foundAtMost)
	if err != nil {
		return Recovery{}, false, fmt.Errorf("recovering webhooks of company %d: %w", company, err)
	}
	r, err = pgx.CollectExactlyOneRow(rows, scanRecovery)
	if errors.Is(err, pgx.ErrNoRows) {
		r, err = w.RecoveryOf(ctx, company)
		return r, false, err
	}
	if err != nil {
		return Recovery{}, false, fmt.Errorf("recovering webhooks of company %d: %w", company, err)
	}
	return r, true, nil
}

// RecoveryOf returns a company's latest recovery, or ErrNotFound.
func (w *Webhooks) RecoveryOf(ctx context.Context, company sms.CompanyID) (Recovery, error) {
	rows, err := w.pool.Query(ctx, `SELECT `+recoveryColumns+` FROM webhook_recoveries WHERE company_id = $1 ORDER BY id DESC LIMIT 1`, int64(company))
	if err != nil {
		return Recovery{}, fmt.Errorf("reading the recovery of company %d: %w", company, err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanRecovery)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return Recovery{}, fmt.Errorf("reading the recovery of company %d: %w", company, err)
	}
	return r, nil
}

func scanRecovery(row pgx.CollectableRow) (r Recovery, err error) {
	err = row.Scan(&r.ID, &r.CompanyID, &r.Since, &r.StartedAt, &r.FinishedAt, &r.Found, &r.Resent)
	return r, err
}

// Advance sends the next batch of a recovery again and returns its progress. Run calls
// it by itself; a command that waits for the end calls it until FinishedAt is set.
// Concurrent calls for one recovery take turns.
func (w *Webhooks) Advance(ctx context.Context, recovery int64) (r Recovery, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		var upTo int64
		err := tx.QueryRow(ctx, `SELECT up_to, `+recoveryColumns+` FROM webhook_recoveries WHERE id = $1 FOR UPDATE`, recovery).
			Scan(&upTo, &r.ID, &r.CompanyID, &r.Since, &r.StartedAt, &r.FinishedAt, &r.Found, &r.Resent)
		if err != nil || r.FinishedAt != nil {
			return err
		}
		// Deliveries given up after the recovery began are not part of it.
		var ids []int64
		var last, resent int64
		err = tx.QueryRow(ctx, `
			WITH next AS MATERIALIZED (
				SELECT u.id FROM webhook_undelivered u JOIN webhook_deliveries d ON d.company_id = u.company_id AND d.id = u.id
				WHERE u.company_id = $1 AND u.due = 'infinity' AND u.id > $2 AND d.at >= $3 AND u.given_up_at <= $4
				ORDER BY u.id LIMIT $5
			), again AS (
				UPDATE webhook_undelivered u SET due = now(), tries = 0, given_up_at = NULL
				FROM next WHERE u.company_id = $1 AND u.id = next.id AND u.due = 'infinity'
				RETURNING u.id
			)
			SELECT coalesce((SELECT array_agg(id) FROM next), '{}'), (SELECT coalesce(max(id), 0) FROM next), (SELECT count(*) FROM again)`,
			int64(r.CompanyID), upTo, r.Since, r.StartedAt, recoverBatch).Scan(&ids, &last, &resent)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, forgetAttempts+`d.company_id = $1 AND d.id = ANY($2))`, int64(r.CompanyID), ids); err != nil {
			return err
		}
		r.Resent += resent
		return tx.QueryRow(ctx, `
			UPDATE webhook_recoveries SET up_to = greatest(up_to, $2), resent = $3,
				finished_at = CASE WHEN $4 THEN now() END
			WHERE id = $1 RETURNING finished_at`, recovery, last, r.Resent, len(ids) < recoverBatch).Scan(&r.FinishedAt)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return Recovery{}, fmt.Errorf("recovery %d of webhooks: %w", recovery, err)
	}
	w.wake(int64(r.CompanyID), want{again: true})
	return r, nil
}

// recoverAll advances the recoveries that are under way, each in turn, until ctx ends.
func (w *Webhooks) recoverAll(ctx context.Context) {
	trouble := false
	for pause := recoverIdle; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		worked, err := w.recoverRound(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !trouble:
			w.log.Error("webhook recovery failed; trying again", "error", err)
		}
		trouble = err != nil
		pause = recoverIdle
		if worked && err == nil {
			pause = recoverPause
		}
	}
}

func (w *Webhooks) recoverRound(ctx context.Context) (worked bool, err error) {
	rows, err := w.pool.Query(ctx, `SELECT id FROM webhook_recoveries WHERE finished_at IS NULL ORDER BY id LIMIT 100`)
	if err != nil {
		return false, fmt.Errorf("looking for recoveries: %w", err)
	}
	open, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return false, fmt.Errorf("looking for recoveries: %w", err)
	}
	for _, id := range open {
		r, err := w.Advance(ctx, id)
		if err != nil {
			return worked, err
		}
		worked = true
		if r.FinishedAt != nil {
			w.log.Info("webhook recovery finished", "company_id", int64(r.CompanyID), "resent", r.Resent)
		}
	}
	return worked, nil
}
