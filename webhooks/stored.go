package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

// storedEndpoint is the part of an active endpoint that its worker needs.
type storedEndpoint struct {
	company     int64
	url, secret string        // as stored
	previous    string        // the previous secret, as stored, during a rotation
	failing     bool          // the last call failed
	wait        time.Duration // until its first undelivered delivery is due; negative: since when it is due
}

const storedColumns = `e.company_id, e.url, e.secret, CASE WHEN e.previous_until > now() THEN coalesce(e.previous_secret, '') ELSE '' END,
	e.failing_since IS NOT NULL`

// dueEndpoints finds the active endpoints with undelivered deliveries that are not
// given up. It skips through the due index from company to company: two index probes
// each, however long the backlogs.
func (w *Webhooks) dueEndpoints(ctx context.Context) ([]storedEndpoint, error) {
	rows, err := w.pool.Query(ctx, `
		WITH RECURSIVE owed AS (
			(SELECT company_id, due FROM webhook_undelivered ORDER BY company_id, due LIMIT 1)
			UNION ALL
			SELECT n.company_id, n.due FROM owed o CROSS JOIN LATERAL (
				SELECT company_id, due FROM webhook_undelivered
				WHERE company_id > o.company_id ORDER BY company_id, due LIMIT 1) n
		)
		SELECT `+storedColumns+`, extract(epoch FROM o.due - now())::float8
		FROM owed o JOIN webhook_endpoints e ON e.company_id = o.company_id AND e.active WHERE o.due < 'infinity'`)
	return collectStored(rows, err, true)
}

// stored reads the endpoints of a condition.
func (w *Webhooks) stored(ctx context.Context, condition string, arg any) ([]storedEndpoint, error) {
	rows, err := w.pool.Query(ctx, `SELECT `+storedColumns+` FROM webhook_endpoints e WHERE `+condition, arg)
	return collectStored(rows, err, false)
}

func collectStored(rows pgx.Rows, err error, timed bool) ([]storedEndpoint, error) {
	if err != nil {
		return nil, fmt.Errorf("reading webhook endpoints: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s storedEndpoint, err error) {
		into := []any{&s.company, &s.url, &s.secret, &s.previous, &s.failing}
		var seconds float64
		if timed {
			into = append(into, &seconds)
		}
		err = row.Scan(into...)
		s.wait = time.Duration(seconds * float64(time.Second))
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading webhook endpoints: %w", err)
	}
	return found, nil
}

// fetched is a due delivery and its position.
type fetched struct {
	job
	position
}

// fetch reads due deliveries of companies. Nothing is written: no other process takes
// them while this one is the owner.
func (w *Webhooks) fetch(ctx context.Context, want fetchPlan) (map[int64][]fetched, error) {
	due, ids := make([]time.Time, len(want.last)), make([]int64, len(want.last))
	for i, p := range want.last {
		due[i], ids[i] = p.due, p.id
	}
	rows, err := w.pool.Query(ctx, `
		SELECT d.company_id, d.seq, d.id, d.at, d.phone_number, coalesce(d.data, ''), coalesce(d.client_reference, ''), u.tries, u.due
		FROM unnest($1::bigint[], $2::integer[], $3::timestamptz[], $4::bigint[]) AS l(company_id, room, due, id)
		CROSS JOIN LATERAL (
			SELECT company_id, id, due, tries FROM webhook_undelivered
			WHERE company_id = l.company_id AND due <= now() AND (due, id) > (l.due, l.id)
			ORDER BY due, id LIMIT l.room) u
		JOIN webhook_deliveries d ON d.company_id = u.company_id AND d.id = u.id
		ORDER BY u.due, u.id`, want.companies, want.limits, due, ids)
	if err != nil {
		return nil, fmt.Errorf("fetching due webhooks: %w", err)
	}
	defer rows.Close()
	all := make(map[int64][]fetched, len(want.companies))
	for rows.Next() {
		var company int64
		f := fetched{job: job{undelivered: true}}
		if err := rows.Scan(&company, &f.seq, &f.job.id, &f.at, &f.number, &f.data, &f.reference, &f.tries, &f.due); err != nil {
			return nil, fmt.Errorf("fetching due webhooks: %w", err)
		}
		f.position.id = f.job.id
		all[company] = append(all[company], f)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("fetching due webhooks: %w", err)
	}
	return all, nil
}

// countEndpoints updates the metric of endpoints by state.
func (w *Webhooks) countEndpoints(ctx context.Context) error {
	var active, inactive int64
	err := w.pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE active), count(*) FILTER (WHERE NOT active) FROM webhook_endpoints`).
		Scan(&active, &inactive)
	if err != nil {
		return fmt.Errorf("counting webhook endpoints: %w", err)
	}
	w.metrics.active.Set(float64(active))
	w.metrics.inactive.Set(float64(inactive))
	return nil
}

// newTarget makes the target of a stored endpoint.
func (w *Webhooks) newTarget(s storedEndpoint) (*target, error) {
	u, err := url.Parse(s.url)
	if err != nil {
		return nil, errors.New("the stored URL does not parse") // the URL may hold a secret: not for the log
	}
	secret, err := w.vault.Open(s.company, s.secret)
	if err != nil {
		return nil, err
	}
	sign, err := newSigner(secret)
	if err != nil {
		return nil, err
	}
	if s.previous != "" {
		before, err := w.vault.Open(s.company, s.previous)
		if err != nil {
			return nil, err
		}
		if sign.previous, err = newSigner(before); err != nil {
			return nil, err
		}
	}
	t := newTargetOf(u, sign)
	t.storedURL, t.storedSecret = s.url, s.secret+" "+s.previous
	return t, nil
}
