package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Face is an endpoint as administrators see it: without its secret, and without
// what may be one in its URL.
type Face struct {
	URL            string // no password, no query
	Active         bool
	UpdatedAt      time.Time
	FailingSince   *time.Time // the first failure since the last success
	DisabledAt     *time.Time // the gateway switched it off then
	DisabledReason string
}

// FaceOf returns a company's endpoint, or ErrNotFound. It needs no key: no secret
// is opened.
func FaceOf(ctx context.Context, db querier, company sms.CompanyID) (f Face, err error) {
	err = db.QueryRow(ctx, `SELECT url, active, updated_at, failing_since, disabled_at, coalesce(disabled_reason, '')
		FROM webhook_endpoints WHERE company_id = $1`, int64(company)).
		Scan(&f.URL, &f.Active, &f.UpdatedAt, &f.FailingSince, &f.DisabledAt, &f.DisabledReason)
	if errors.Is(err, pgx.ErrNoRows) {
		return f, ErrNotFound
	}
	if err != nil {
		return f, fmt.Errorf("reading the webhook endpoint of company %d: %w", company, err)
	}
	f.URL = withoutSecrets(f.URL)
	return f, nil
}

func withoutSecrets(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	u.User, u.Fragment = nil, ""
	return u.String()
}
