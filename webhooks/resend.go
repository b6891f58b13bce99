package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Resend sends a company's delivery again at once, with the same body and webhook-id, and returns its new state. A
// finished delivery starts a new round of attempts and keeps its latest old ones; a pending one is only brought
// forward. While the endpoint is inactive the delivery waits. Resend returns ErrNotFound if the company has no such
// delivery. It gives way to a concurrent change of the delivery (postgres.GaveWay); the caller then repeats its
// transaction.
func (w *Webhooks) Resend(ctx context.Context, company sms.CompanyID, deliveryID int64) (Delivery, error) {
	_, err := w.pool.Exec(ctx, `
		UPDATE webhook_deliveries SET delivered = false, due = least(due, now()), given_up_at = NULL,
			tries = CASE WHEN isfinite(due) THEN tries ELSE 0 END,
			attempts = (SELECT json_agg(a.attempt ORDER BY a.n) FROM json_array_elements(attempts) WITH ORDINALITY AS a(attempt,
			n)
				WHERE a.n > json_array_length(attempts) - $3)
		WHERE company_id = $1 AND id = $2`, int64(company), deliveryID, attemptsKept)
	if err != nil {
		return Delivery{}, fmt.Errorf("re-sending webhook delivery %d: %w", deliveryID, err)
	}
	d, err := w.Delivery(ctx, company, deliveryID)
	if err != nil {
		return Delivery{}, fmt.Errorf("re-sending webhook delivery %d: %w", deliveryID, err)
	}
	w.Kick()
	return d, nil
}

// attemptsKept is how many attempts a re-send keeps: repeated re-sends must not fill the disk.
const attemptsKept = 60

const (
	RecoverMost = 50_000                 // deliveries of one call of Recover
	recoverPace = 400 * time.Microsecond // between their first attempts
)

// Recover sends again a company's given-up deliveries of events recorded since a time, RecoverMost at most, and returns
// how many. They become due one after another, so new events do not queue behind them.
func (w *Webhooks) Recover(ctx context.Context, company sms.CompanyID, since time.Time) (resent int64, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := lockEndpoint(ctx, tx, company); err != nil { // recoveries of one company take turns
			return err
		}
		done, err := tx.Exec(ctx, `
			WITH failed AS MATERIALIZED (
				SELECT ctid AS at, row_number() OVER (ORDER BY id) AS place FROM webhook_undelivered
				WHERE company_id = $1 AND due = 'infinity' AND at >= $2 ORDER BY id LIMIT $3
			)
			-- by ctid: without statistics the planner joined by a scan of the table, and 50,000 rows took more than 10 s
			UPDATE webhook_undelivered u SET due = now() + failed.place * $4::interval, tries = 0, given_up_at = NULL
			FROM failed WHERE u.ctid = failed.at AND u.due = 'infinity'`, int64(company), since, RecoverMost, recoverPace)
		resent = done.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("recovering webhooks of company %d: %w", company, err)
	}
	w.Kick()
	return resent, nil
}

// GivenUp returns how many of a company's deliveries of events since a time are given up.
func (w *Webhooks) GivenUp(ctx context.Context, company sms.CompanyID, since time.Time) (n int64, err error) {
	if err = w.pool.QueryRow(ctx, `SELECT count(*) FROM webhook_undelivered WHERE company_id = $1 AND due = 'infinity'
		AND at >= $2`, int64(company), since).Scan(&n); err != nil {
		err = fmt.Errorf("counting the deliveries of company %d that are given up: %w", company, err)
	}
	return n, err
}
