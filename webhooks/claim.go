package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

// due is an active endpoint with pending deliveries.
type due struct {
	company     int64
	wait        time.Duration // until its first delivery is due; negative: how long it has been
	url, secret string        // as stored
	previous    string        // the secret of before, as stored, while it signs as well
}

// storedColumns are what newTarget needs of an endpoint.
const storedColumns = `e.url, e.secret, CASE WHEN e.previous_until > now() THEN coalesce(e.previous_secret, '') ELSE '' END`

// survey finds the active endpoints with pending deliveries, hopping over the
// due index from company to company: two index probes each, however long their
// backlogs.
func (w *Webhooks) survey(ctx context.Context) ([]due, error) {
	rows, err := w.pool.Query(ctx, `
		WITH RECURSIVE owed AS (
			(SELECT company_id, next_at FROM webhook_deliveries
			 WHERE state = 0 ORDER BY company_id, next_at LIMIT 1)
			UNION ALL
			SELECT n.company_id, n.next_at FROM owed o CROSS JOIN LATERAL (
				SELECT company_id, next_at FROM webhook_deliveries
				WHERE state = 0 AND company_id > o.company_id ORDER BY company_id, next_at LIMIT 1) n
		)
		SELECT o.company_id, extract(epoch FROM o.next_at - now())::float8, `+storedColumns+`
		FROM owed o JOIN webhook_endpoints e ON e.company_id = o.company_id AND e.active`)
	if err != nil {
		return nil, fmt.Errorf("looking for due webhooks: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (due, error) {
		var d due
		var seconds float64
		err := row.Scan(&d.company, &seconds, &d.url, &d.secret, &d.previous)
		d.wait = time.Duration(seconds * float64(time.Second))
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for due webhooks: %w", err)
	}
	return found, nil
}

// claimFor takes up to rooms[i] due deliveries of companies[i] and leases them.
// Rows that another worker is taking at this moment are skipped. It returns
// them by company.
func (w *Webhooks) claimFor(ctx context.Context, companies []int64, rooms []int32) (map[int64][]claimed, error) {
	// Reckoned from before the statement, our lease ends before Postgres's.
	lease := time.Now().Add(w.opts.Lease)
	rows, err := w.pool.Query(ctx, `
		WITH taken AS MATERIALIZED (
			SELECT d.id
			FROM unnest($1::bigint[], $2::integer[]) AS l(company_id, room)
			JOIN webhook_endpoints e ON e.company_id = l.company_id AND e.active
			CROSS JOIN LATERAL (
				SELECT id FROM webhook_deliveries
				WHERE company_id = l.company_id AND state = 0 AND next_at <= now() AND leased_until <= now()
				ORDER BY next_at LIMIT l.room
				FOR UPDATE SKIP LOCKED) d
		)
		UPDATE webhook_deliveries d SET leased_until = now() + $3 * interval '1 second'
		FROM taken WHERE d.id = taken.id
		RETURNING d.id, d.company_id, d.tries, d.body`, companies, rooms, w.opts.Lease.Seconds())
	if err != nil {
		return nil, fmt.Errorf("taking due webhooks: %w", err)
	}
	defer rows.Close()
	taken := make(map[int64][]claimed, len(companies))
	for rows.Next() {
		var company int64
		c := claimed{lease: lease}
		if err := rows.Scan(&c.id, &company, &c.tries, &c.body); err != nil {
			return nil, fmt.Errorf("taking due webhooks: %w", err)
		}
		taken[company] = append(taken[company], c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("taking due webhooks: %w", err)
	}
	return taken, nil
}

// release hands leases back, so that a delivery that was not called can be taken
// at once. It must not be told of a delivery whose lease may have run out.
func (w *Webhooks) release(ctx context.Context, ids []int64) error {
	_, err := w.pool.Exec(ctx, `
		WITH free AS (SELECT id FROM webhook_deliveries WHERE id = ANY($1) AND state + 0 = 0 FOR UPDATE SKIP LOCKED) -- by id, whatever the planner knows
		UPDATE webhook_deliveries d SET leased_until = '-infinity' FROM free WHERE d.id = free.id`, ids)
	if err != nil {
		return fmt.Errorf("handing back %d webhooks: %w", len(ids), err)
	}
	return nil
}

// endpoints reads what is stored of active endpoints.
func (w *Webhooks) endpoints(ctx context.Context, companies []int64) ([]due, error) {
	return w.stored(ctx, `company_id = ANY($1) AND active`, companies)
}

func (w *Webhooks) stored(ctx context.Context, condition string, arg any) ([]due, error) {
	rows, err := w.pool.Query(ctx, `SELECT company_id, `+storedColumns+` FROM webhook_endpoints e WHERE `+condition, arg)
	if err != nil {
		return nil, fmt.Errorf("reading webhook endpoints: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (due, error) {
		var d due
		return d, row.Scan(&d.company, &d.url, &d.secret, &d.previous)
	})
	if err != nil {
		return nil, fmt.Errorf("reading webhook endpoints: %w", err)
	}
	return found, nil
}

// census counts the endpoints.
func (w *Webhooks) census(ctx context.Context) (active, inactive int64, err error) {
	err = w.pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE active), count(*) FILTER (WHERE NOT active) FROM webhook_endpoints`).
		Scan(&active, &inactive)
	if err != nil {
		return 0, 0, fmt.Errorf("counting webhook endpoints: %w", err)
	}
	return active, inactive, nil
}

// newTarget makes a target of what is stored.
func (w *Webhooks) newTarget(d due) (*target, error) {
	u, err := url.Parse(d.url)
	if err != nil {
		return nil, errors.New("the stored URL does not parse") // its text is not for the log
	}
	secret, err := w.vault.open(d.company, d.secret)
	if err != nil {
		return nil, err
	}
	s, err := newSigner(secret)
	if err != nil {
		return nil, err
	}
	if d.previous != "" {
		before, err := w.vault.open(d.company, d.previous)
		if err != nil {
			return nil, err
		}
		if s.previous, err = newSigner(before); err != nil {
			return nil, err
		}
	}
	return &target{url: u, signer: s, storedURL: d.url, storedSecret: d.secret + " " + d.previous}, nil
}
