package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/internal/vault"
	"intumwa/sms"
)

// ErrNotFound is returned when there is no such endpoint or delivery.
var ErrNotFound = errors.New("not found")

// Endpoint is the URL that receives a company's events. A company has at most one. rule api 2.4
type Endpoint struct {
	CompanyID int64
	URL       string
	Secret    string // whsec_…; never to be logged
	Active    bool
	UpdatedAt time.Time
	// Made is true when SetEndpoint has just generated the secret.
	Made bool

	// PreviousUntil is until when the previous secret signs too; nil: only one secret signs.
	PreviousUntil *time.Time
	FailingSince  *time.Time // the first failure since the last success; nil: not failing
	Events        []string   // the requested ones of Askable; it gets them besides Sent and Failed

	sealed string // the secret as stored
}

// Setting changes an endpoint. A zero field changes nothing; a new endpoint is active and gets a generated secret. A
// given secret replaces the current one at once and ends a rotation; Rotate keeps both valid.
type Setting struct {
	URL    string // required for a new endpoint
	Secret string // whsec_ and the base64 of 24 to 64 bytes
	Active *bool
	Events *[]string // of Askable, replaces the earlier ones; nil: no change
}

// SetEndpoint creates or changes a company's endpoint and returns its new state. An invalid URL, secret or event is an
// sms.Refusal. The caller ensures that the company exists.
func (w *Webhooks) SetEndpoint(ctx context.Context, companyID int64, s Setting) (Endpoint, error) {
	if s.Secret != "" {
		if _, err := secretKey(s.Secret); err != nil {
			return Endpoint{}, err
		}
	}
	var events []string
	if s.Events != nil {
		var err error
		if events, err = checkEvents(*s.Events, Askable()); err != nil {
			return Endpoint{}, err
		}
	}
	return w.changeEndpoint(ctx, sms.CompanyID(companyID), "setting the webhook endpoint",
		func(tx pgx.Tx, e *Endpoint, err error) error {
			switch {
			case errors.Is(err, ErrNotFound):
				*e = Endpoint{CompanyID: companyID, Active: true, Events: []string{}}
			case err != nil && (s.Secret == "" || !unreadable(err)):
				return err // a secret that cannot be decrypted may only be replaced
			}
			moved := false
			if s.URL != "" || e.URL == "" {
				if err := w.guard.checkURL(s.URL); err != nil {
					return err
				}
				moved = e.URL != s.URL
				e.URL = s.URL
			}
			if s.Secret != "" {
				e.Secret, e.PreviousUntil = s.Secret, nil
			} else if e.Secret == "" {
				e.Secret, e.Made = newSecret(), true
			}
			if s.Active != nil {
				e.Active = *s.Active
			}
			if s.Events != nil {
				e.Events = events
			}
			return tx.QueryRow(ctx, `
			INSERT INTO webhook_endpoints AS e (company_id, url, secret, active, events)
			VALUES ($1, $2, $3, $4, $7)
			ON CONFLICT (company_id) DO UPDATE
			SET url = excluded.url, secret = excluded.secret, active = excluded.active, events = excluded.events,
			updated_at = now(),
				previous_secret = CASE WHEN NOT $5 THEN e.previous_secret END, previous_until = CASE WHEN NOT $5
				THEN e.previous_until END,
				failing_since = CASE WHEN NOT $6 AND e.active = excluded.active THEN e.failing_since END,
				given_up_at = CASE WHEN NOT $6 AND e.active = excluded.active THEN e.given_up_at END
			RETURNING updated_at, failing_since`,
				companyID, e.URL, w.vault.Seal(companyID, e.Secret), e.Active, s.Secret != "", moved, e.Events).Scan(
				&e.UpdatedAt, &e.FailingSince)
		})
}

// RotationOverlap is how long the previous secret signs besides the new one.
const RotationOverlap = 24 * time.Hour

// Rotate gives a company's endpoint a new signing secret. During RotationOverlap both secrets sign: webhook-signature
// has two signatures. X-Webhook-Signature has room for one: the old secret's until the overlap ends. The returned
// endpoint has the new secret and PreviousUntil.
//
// A second rotation during the overlap is an sms.Refusal: a receiver could hold neither of the two valid secrets. Call
// EndRotation first.
func (w *Webhooks) Rotate(ctx context.Context, company sms.CompanyID) (Endpoint, error) {
	return w.changeEndpoint(ctx, company, "rotating the webhook secret", func(tx pgx.Tx, e *Endpoint, err error) error {
		switch {
		case err != nil && !unreadable(err):
			return err
		case e.PreviousUntil != nil:
			return newRefusal(BadRotation, "The signing secret was changed less than a day ago: both are valid until %s.",
				e.PreviousUntil.UTC().Format(timestampLayout))
		}
		e.Secret = newSecret()
		return tx.QueryRow(ctx, `
			UPDATE webhook_endpoints SET previous_secret = secret, previous_until = now() + $3::interval, secret = $2,
				updated_at = now()
			WHERE company_id = $1 RETURNING previous_until, updated_at`,
			int64(company), w.vault.Seal(int64(company), e.Secret), RotationOverlap).Scan(&e.PreviousUntil, &e.UpdatedAt)
	})
}

// EndRotation ends a rotation early: the previous secret stops signing. Without a rotation it changes nothing.
func (w *Webhooks) EndRotation(ctx context.Context, company sms.CompanyID) (Endpoint, error) {
	return w.changeEndpoint(ctx, company, "ending the rotation of the webhook secret",
		func(tx pgx.Tx, e *Endpoint, err error) error {
			if err != nil && !unreadable(err) {
				return err
			}
			e.PreviousUntil = nil
			return tx.QueryRow(ctx, `
			UPDATE webhook_endpoints SET previous_secret = NULL, previous_until = NULL, updated_at = now()
			WHERE company_id = $1 RETURNING updated_at`, int64(company)).Scan(&e.UpdatedAt)
		})
}

// changeEndpoint locks a company's endpoint and calls change with the current endpoint and the error of reading it. It
// returns the endpoint as changed.
func (w *Webhooks) changeEndpoint(ctx context.Context, company sms.CompanyID, doing string,
	change func(tx pgx.Tx, e *Endpoint, err error) error) (e Endpoint, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := lockEndpoint(ctx, tx, company); err != nil {
			return err
		}
		if e, err = w.In(tx).EndpointOf(ctx, company); err == nil {
			e.Secret, err = w.vault.Open(int64(company), e.sealed)
			e.sealed = ""
		}
		return change(tx, &e, err)
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("%s of company %d: %w", doing, company, err)
	}
	w.EndpointChanged(strconv.FormatInt(int64(company), 10))
	return e, nil
}

// unreadable reports whether only an endpoint's secret failed to decrypt.
func unreadable(err error) bool {
	return errors.Is(err, vault.ErrNoKey) || errors.Is(err, vault.ErrWrongKey)
}

// lockEndpoint serializes changes of a company's endpoint, even before its row exists.
func lockEndpoint(ctx context.Context, tx pgx.Tx, company sms.CompanyID) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('webhook_endpoints', $1))`, int64(company))
	return err
}

// EndpointOf returns a company's endpoint without its secret, or ErrNotFound.
func (w *Webhooks) EndpointOf(ctx context.Context, company sms.CompanyID) (Endpoint, error) {
	found, err := w.Endpoints(ctx, int64(company)-1, 1)
	if err != nil {
		return Endpoint{}, err
	}
	if len(found) == 0 || found[0].CompanyID != int64(company) {
		return Endpoint{}, fmt.Errorf("the webhook endpoint of company %d: %w", company, ErrNotFound)
	}
	return found[0], nil
}

// Endpoints lists at most limit endpoints by company id, from the first after the given id, without secrets.
func (w *Webhooks) Endpoints(ctx context.Context, after int64, limit int) ([]Endpoint, error) {
	return postgres.All(ctx, w.pool, "listing webhook endpoints", func(row pgx.CollectableRow) (e Endpoint, err error) {
		err = row.Scan(&e.CompanyID, &e.URL, &e.sealed, &e.Active, &e.UpdatedAt, &e.PreviousUntil, &e.FailingSince, &e.Events)
		return e, err
	}, `
		SELECT company_id, url, secret, active, updated_at, CASE WHEN previous_until > now()
			THEN previous_until END, failing_since, events
		FROM webhook_endpoints WHERE company_id > $1 ORDER BY company_id LIMIT $2`, after, limit)
}

// RecordedURL returns an endpoint's URL without the parts that may hold a secret, such as the query. The audit log and
// administrators see this form.
func RecordedURL(text string) string {
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
