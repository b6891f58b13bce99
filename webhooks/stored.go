package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// storedEndpoint is the part of an endpoint that a call needs.
type storedEndpoint struct {
	company     int64
	url, secret string // as stored
	previous    string // the previous secret, as stored, during a rotation
	failing     bool   // the last call failed
}

const storedColumns = `e.company_id, e.url, e.secret, CASE WHEN e.previous_until > now() THEN coalesce(e.previous_secret, '') ELSE '' END AS previous,
	e.failing_since IS NOT NULL AS failing`

// fields are what storedColumns are scanned into.
func (s *storedEndpoint) fields() []any {
	return []any{&s.company, &s.url, &s.secret, &s.previous, &s.failing}
}

// stored reads a company's endpoint, or returns ErrNotFound.
func (w *Webhooks) stored(ctx context.Context, company int64) (s storedEndpoint, err error) {
	err = w.pool.QueryRow(ctx, `SELECT `+storedColumns+` FROM webhook_endpoints e WHERE e.company_id = $1`, company).Scan(s.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return s, fmt.Errorf("reading the webhook endpoint of company %d: %w", company, err)
	}
	return s, nil
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
	t.stored = s
	return t, nil
}
