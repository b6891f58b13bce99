package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
	"intumwa/vault"
)

// BothValid is how long the secret of before signs beside the new one.
const BothValid = 24 * time.Hour

// Rotate gives a company's endpoint a new signing secret. For BothValid both
// sign: webhook-signature has two signatures, and X-Webhook-Signature, which has
// room for one, stays the old secret's until then. The answer has the new secret
// and PreviousUntil.
//
// A rotation while another is under way is an sms.Refusal: receivers would be
// left with a secret that is in neither place. EndRotation comes first.
func (w *Webhooks) Rotate(ctx context.Context, company sms.CompanyID) (e Endpoint, err error) {
	err = w.changeEndpoint(ctx, company, func(tx pgx.Tx, now Endpoint) error {
		if now.PreviousUntil != nil {
			return refuse(BadRotation, "The signing secret was changed less than a day ago: both are valid until %s.", now.PreviousUntil.UTC().Format(timestampLayout))
		}
		e = now
		e.Secret = newSecret()
		return tx.QueryRow(ctx, `
			UPDATE webhook_endpoints SET previous_secret = secret, previous_until = now() + $3::interval, secret = $2, updated_at = now()
			WHERE company_id = $1 RETURNING previous_until, updated_at`,
			int64(company), w.vault.Seal(int64(company), e.Secret), BothValid).Scan(&e.PreviousUntil, &e.UpdatedAt)
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("rotating the webhook secret of company %d: %w", company, err)
	}
	return e, nil
}

// EndRotation is the switch ahead of time: the secret of before signs no more.
// Without a rotation under way it changes nothing.
func (w *Webhooks) EndRotation(ctx context.Context, company sms.CompanyID) (e Endpoint, err error) {
	err = w.changeEndpoint(ctx, company, func(tx pgx.Tx, now Endpoint) error {
		e = now
		e.PreviousUntil = nil
		return tx.QueryRow(ctx, `
			UPDATE webhook_endpoints SET previous_secret = NULL, previous_until = NULL, updated_at = now()
			WHERE company_id = $1 RETURNING updated_at`, int64(company)).Scan(&e.UpdatedAt)
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("ending the rotation of the webhook secret of company %d: %w", company, err)
	}
	return e, nil
}

// changeEndpoint lets change work on a company's endpoint while nobody else does.
func (w *Webhooks) changeEndpoint(ctx context.Context, company sms.CompanyID, change func(tx pgx.Tx, now Endpoint) error) error {
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := lockEndpoint(ctx, tx, int64(company)); err != nil {
			return err
		}
		now, err := w.endpoint(ctx, tx, int64(company))
		if err != nil && !errors.Is(err, vault.ErrNoKey) && !errors.Is(err, vault.ErrWrongKey) { // what does not open can be replaced
			return err
		}
		return change(tx, now)
	})
	if err != nil {
		return err
	}
	w.changes.add(int64(company))
	w.Kick()
	return nil
}

// lockEndpoint lets one change of a company's endpoint happen at a time, also
// while there is no row yet.
func lockEndpoint(ctx context.Context, tx pgx.Tx, company int64) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('webhook_endpoints', $1))`, company)
	return err
}
