package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Why the gateway switched an endpoint off.
const (
	DisabledFailing = "failing" // nothing but failures for Options.DisableAfter
	DisabledGone    = "gone"    // it answered 410 Gone
)

// Failing is an endpoint that keeps failing: a delivery was given up, and no call has
// succeeded since.
type Failing struct {
	CompanyID      sms.CompanyID
	URL            string
	Active         bool       // false: switched off since
	FailingSince   *time.Time // the first failure since the last success
	GivenUpAt      time.Time  // the first delivery given up since
	DisabledAt     *time.Time
	DisabledReason string // "" unless the gateway switched it off
}

const failingColumns = `company_id, url, active, failing_since, given_up_at, disabled_at, coalesce(disabled_reason, '')`

func scanFailing(row pgx.CollectableRow) (f Failing, err error) {
	err = row.Scan(&f.CompanyID, &f.URL, &f.Active, &f.FailingSince, &f.GivenUpAt, &f.DisabledAt, &f.DisabledReason)
	return f, err
}

// Failing lists the endpoints whose first given-up delivery was at since or later, the
// earliest first, at most limit of them.
func (w *Webhooks) Failing(ctx context.Context, since time.Time, limit int) ([]Failing, error) {
	rows, err := w.pool.Query(ctx, `SELECT `+failingColumns+` FROM webhook_endpoints
		WHERE given_up_at >= $1 ORDER BY given_up_at LIMIT $2`, since, limit)
	if err != nil {
		return nil, fmt.Errorf("listing failing endpoints: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanFailing)
	if err != nil {
		return nil, fmt.Errorf("listing failing endpoints: %w", err)
	}
	return found, nil
}

// notifyAgainAfter is the shortest time between two mails to an owner: an endpoint that
// fails, recovers and fails again is one mail a day.
const notifyAgainAfter = 24 * time.Hour

// TakeFailing returns the endpoints that keep failing and whose owners have not been
// notified, at most limit of them, and marks them as notified. The caller writes its
// mails in the same tx, so that each mail is written exactly once, by one process.
func TakeFailing(ctx context.Context, tx pgx.Tx, limit int) ([]Failing, error) {
	rows, err := tx.Query(ctx, `
		UPDATE webhook_endpoints SET told_at = now()
		WHERE company_id IN (
			SELECT company_id FROM webhook_endpoints
			WHERE given_up_at IS NOT NULL AND (told_at IS NULL OR told_at < given_up_at AND told_at < now() - $1::interval)
			ORDER BY given_up_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING `+failingColumns, notifyAgainAfter, limit)
	if err != nil {
		return nil, fmt.Errorf("looking for endpoints whose owners are to be told: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanFailing)
	if err != nil {
		return nil, fmt.Errorf("looking for endpoints whose owners are to be told: %w", err)
	}
	return found, nil
}

// health summarizes the results of one endpoint in a batch.
type health struct {
	last    bool // the last call of it succeeded
	any     bool // one of the calls succeeded
	givenUp bool // a delivery was given up after that
	gone    bool // the response was 410 after that, and Options.DisableOnGone is set
}

// callee is an endpoint with the URL that was called: a result of an old URL does not
// count against the new one.
type callee struct {
	company int64
	url     string
}

// noteHealth stores since when each endpoint has been failing, and switches endpoints
// off as Options say. It runs one statement a batch, which writes only changes.
func (w *Webhooks) noteHealth(ctx context.Context, batch []result) error {
	by := make(map[callee]health)
	for i := range batch {
		r := &batch[i]
		h := by[r.endpoint]
		if r.state == delivered {
			h = health{last: true, any: true}
		} else {
			h.last = false
			h.givenUp = h.givenUp || r.state == exhausted
			h.gone = h.gone || w.opts.DisableOnGone && r.attempt.Status == http.StatusGone
		}
		by[r.endpoint] = h
	}
	var companies []int64
	var urls []string
	var last, some, givenUp, gone []bool
	for e, h := range by {
		companies, urls, last = append(companies, e.company), append(urls, e.url), append(last, h.last)
		some, givenUp, gone = append(some, h.any), append(givenUp, h.givenUp), append(gone, h.gone)
	}
	rows, err := w.pool.Query(ctx, `
		WITH said AS (
			SELECT r.*, e.active AND (r.gone OR $7::float8 > 0 AND NOT r.any_did AND e.failing_since <= now() - $7 * interval '1 second') AS ends
			FROM unnest($1::bigint[], $2::text[], $3::boolean[], $4::boolean[], $5::boolean[], $6::boolean[])
				AS r(company_id, url, last, any_did, given_up, gone)
			JOIN webhook_endpoints e ON e.company_id = r.company_id AND e.url = r.url
			WHERE r.any_did AND e.failing_since IS NOT NULL
				OR NOT r.last AND (e.failing_since IS NULL OR r.given_up AND e.given_up_at IS NULL
					OR e.active AND (r.gone OR $7 > 0 AND e.failing_since <= now() - $7 * interval '1 second'))
			ORDER BY r.company_id FOR UPDATE OF e
		)
		UPDATE webhook_endpoints e SET
			failing_since = CASE WHEN said.last THEN NULL WHEN said.any_did THEN now() ELSE coalesce(e.failing_since, now()) END,
			given_up_at = CASE
				WHEN NOT said.last AND e.given_up_at IS NOT NULL AND NOT said.any_did THEN e.given_up_at
				WHEN NOT said.last AND (said.given_up OR said.ends) THEN now() END,
			active = e.active AND NOT said.ends,
			disabled_at = CASE WHEN said.ends THEN now() ELSE e.disabled_at END,
			disabled_reason = CASE WHEN NOT said.ends THEN e.disabled_reason WHEN said.gone THEN 'gone' ELSE 'failing' END
		FROM said WHERE e.company_id = said.company_id
		RETURNING e.company_id, CASE WHEN said.ends THEN e.disabled_reason ELSE '' END`,
		companies, urls, last, some, givenUp, gone, w.opts.DisableAfter.Seconds())
	if err != nil {
		return fmt.Errorf("noting how %d endpoints are: %w", len(companies), err)
	}
	var company int64
	var off string
	_, err = pgx.ForEachRow(rows, []any{&company, &off}, func() error {
		if off != "" {
			w.metrics.disabled[off].Inc()
			w.log.Warn("webhook endpoint switched off", "company_id", company, "reason", off)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("noting how %d endpoints are: %w", len(companies), err)
	}
	return nil
}
