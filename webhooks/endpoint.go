package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// ErrNotFound says that there is no such endpoint or delivery.
var ErrNotFound = errors.New("not found")

// Endpoint is the URL that receives a company's events. A company has at most one.
// rule api 2.4
type Endpoint struct {
	CompanyID int64
	URL       string
	Secret    string // whsec_…; never to be logged
	Active    bool
	UpdatedAt time.Time
	// Made is true when SetEndpoint has just generated the secret.
	Made bool

	// PreviousUntil is until when the previous secret signs as well; nil: only one
	// secret signs.
	PreviousUntil *time.Time
	FailingSince  *time.Time // the first failure since the last success; nil: the last call succeeded, or there was none
	// DisabledAt is when the gateway switched the endpoint off, for DisabledReason; nil
	// and "" when it did not.
	DisabledAt     *time.Time
	DisabledReason string

	// Events are those of Askable that it asked for; it gets them beside Sent and Failed.
	Events []string
}

// Setting changes an endpoint. A zero field stays as it is; a new endpoint is active
// and gets a generated secret. A given secret replaces the current one at once and
// ends a rotation; Rotate leaves both valid.
type Setting struct {
	URL    string // required for a new endpoint
	Secret string // whsec_ and the base64 of 24 to 64 bytes
	Active *bool
	Events *[]string // of Askable, in place of those it asked for before; nil: as they are
}

// SetEndpoint creates or changes a company's endpoint and returns its new state. An
// invalid URL, secret or event is an sms.Refusal. The caller makes sure that the company
// exists.
func (w *Webhooks) SetEndpoint(ctx context.Context, companyID int64, s Setting) (Endpoint, error) {
	if s.Secret != "" {
		if _, err := secretKey(s.Secret); err != nil {
			return Endpoint{}, err
		}
	}
	var events []string
	if s.Events != nil {
		var err error
		if events, err = checkEvents(*s.Events); err != nil {
			return Endpoint{}, err
		}
	}
	var e Endpoint
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		// Otherwise two concurrent changes of one company could both find no row.
		if err := lockEndpoint(ctx, tx, companyID); err != nil {
			return err
		}
		var err error
		moved := false
		e, err = w.endpoint(ctx, tx, companyID)
		switch {
		case errors.Is(err, ErrNotFound):
			e = Endpoint{CompanyID: companyID, Active: true}
		case err != nil && s.Secret == "":
			return err // a secret that cannot be decrypted may be replaced, but not kept
		}
		if s.URL != "" || e.URL == "" {
			if err := w.guard.checkURL(s.URL); err != nil {
				return err
			}
			moved = e.URL != s.URL
			e.URL = s.URL
		}
		if s.Secret != "" {
			e.Secret = s.Secret
		} else if e.Secret == "" {
			e.Secret, e.Made = newSecret(), true
		}
		if s.Active != nil {
			e.Active = *s.Active
		}
		if s.Events != nil {
			e.Events = events
		} else if e.Events == nil {
			e.Events = []string{}
		}
		if s.Secret != "" {
			e.PreviousUntil = nil
		}
		if e.Active { // switching it on or changing its URL resets its failures
			e.DisabledAt, e.DisabledReason = nil, ""
		}
		return tx.QueryRow(ctx, `
			INSERT INTO webhook_endpoints AS e (company_id, url, secret, active, events)
			VALUES ($1, $2, $3, $4, $7)
			ON CONFLICT (company_id) DO UPDATE
			SET url = excluded.url, secret = excluded.secret, active = excluded.active, events = excluded.events, updated_at = now(),
				previous_secret = CASE WHEN NOT $5 THEN e.previous_secret END, previous_until = CASE WHEN NOT $5 THEN e.previous_until END,
				failing_since = CASE WHEN NOT $6 AND e.active = excluded.active THEN e.failing_since END,
				given_up_at = CASE WHEN NOT $6 AND e.active = excluded.active THEN e.given_up_at END,
				disabled_at = CASE WHEN NOT excluded.active THEN e.disabled_at END,
				disabled_reason = CASE WHEN NOT excluded.active THEN e.disabled_reason END
			RETURNING updated_at, failing_since`,
			companyID, e.URL, w.vault.Seal(companyID, e.Secret), e.Active, s.Secret != "", moved, e.Events).Scan(&e.UpdatedAt, &e.FailingSince)
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("setting the webhook endpoint of company %d: %w", companyID, err)
	}
	w.wake(companyID, want{changed: true})
	return e, nil
}

// Endpoint returns a company's endpoint, or ErrNotFound.
func (w *Webhooks) Endpoint(ctx context.Context, companyID int64) (Endpoint, error) {
	e, err := w.endpoint(ctx, w.pool, companyID)
	if err != nil {
		return Endpoint{}, fmt.Errorf("reading the webhook endpoint of company %d: %w", companyID, err)
	}
	return e, nil
}

// EndpointOf is Endpoint without decrypting the secret, which stays empty: for pages.
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

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// endpoint returns what could be read even with an error.
func (w *Webhooks) endpoint(ctx context.Context, q querier, companyID int64) (Endpoint, error) {
	e := Endpoint{CompanyID: companyID}
	var stored string
	err := q.QueryRow(ctx, `SELECT url, secret, active, updated_at, CASE WHEN previous_until > now() THEN previous_until END,
			failing_since, disabled_at, coalesce(disabled_reason, ''), events
		FROM webhook_endpoints WHERE company_id = $1`, companyID).
		Scan(&e.URL, &stored, &e.Active, &e.UpdatedAt, &e.PreviousUntil, &e.FailingSince, &e.DisabledAt, &e.DisabledReason, &e.Events)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, ErrNotFound
	}
	if err != nil {
		return e, err
	}
	e.Secret, err = w.vault.Open(companyID, stored)
	return e, err
}
