package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Failing is an endpoint that keeps failing: a delivery was given up, and no call has succeeded since.
type Failing struct {
	CompanyID sms.CompanyID
	Since     time.Time // the first failure since the last success
}

// notifyAgainAfter is the shortest time between two mails to an owner: an endpoint that keeps recovering and failing
// causes one mail a day.
const notifyAgainAfter = 24 * time.Hour

// TakeFailing returns at most limit endpoints that keep failing and whose owners were not notified yet, and marks them
// as notified. The caller writes its mails in the same tx, so one process writes each mail exactly once.
func TakeFailing(ctx context.Context, tx pgx.Tx, limit int) ([]Failing, error) {
	return postgres.All(ctx, tx, "taking endpoints whose owners are to be notified", pgx.RowToStructByPos[Failing], `
		UPDATE webhook_endpoints SET told_at = now()
		WHERE company_id IN (
			SELECT company_id FROM webhook_endpoints
			WHERE given_up_at IS NOT NULL AND (told_at IS NULL OR told_at < given_up_at AND told_at < now() - $1::interval)
			ORDER BY given_up_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING company_id, coalesce(failing_since, given_up_at)`, notifyAgainAfter, limit)
}

// noteHealth stores since when endpoints have been failing. It runs one statement per batch, for endpoints whose call
// failed now or the time before. A result of an old URL does not count against the new one.
func (d *deliverer) noteHealth(ctx context.Context, batch []outcome) error {
	type callee struct {
		company int64
		url     string
	}
	type health struct{ works, gaveUp bool } // the last call succeeded; a delivery was given up after the last success
	by := map[callee]health{}
	d.mu.Lock()
	for i := range batch {
		r, e := &batch[i], d.workers[batch[i].company]
		if !r.called() || r.callback != "" {
			continue
		}
		if works := r.state == delivered; !works || e.failing {
			of := callee{r.company, r.target.stored.url}
			h := by[of]
			by[of] = health{works, !works && (h.gaveUp || r.state == exhausted)}
			e.failing = !works
		}
	}
	d.mu.Unlock()
	if len(by) == 0 {
		return nil
	}
	var companies []int64
	var urls []string
	var works, gaveUp []bool
	for e, h := range by {
		companies, urls, works, gaveUp = append(companies, e.company), append(urls, e.url), append(works, h.works),
			append(gaveUp, h.gaveUp)
	}
	_, err := d.pool.Exec(ctx, `
		WITH r AS (
			SELECT r.* FROM unnest($1::bigint[], $2::text[], $3::boolean[], $4::boolean[]) AS r(company_id, url, works, gave_up)
			JOIN webhook_endpoints e ON e.company_id = r.company_id AND e.url = r.url
			WHERE r.works AND e.failing_since IS NOT NULL OR NOT r.works AND (e.failing_since IS NULL OR r.gave_up
			AND e.given_up_at IS NULL)
			ORDER BY r.company_id FOR UPDATE OF e
		)
		UPDATE webhook_endpoints e SET
			failing_since = CASE WHEN NOT r.works THEN coalesce(e.failing_since, now()) END,
			given_up_at = CASE WHEN NOT r.works AND r.gave_up THEN coalesce(e.given_up_at, now()) WHEN NOT r.works
			THEN e.given_up_at END
		FROM r WHERE e.company_id = r.company_id`, companies, urls, works, gaveUp)
	if err != nil {
		return fmt.Errorf("noting how %d endpoints are: %w", len(companies), err)
	}
	return nil
}
