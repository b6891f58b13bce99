package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/vault"
	"intumwa/sms"
)

// RotationOverlap is how long the previous secret signs beside the new one.
const RotationOverlap = 24 * time.Hour

// Rotate gives a company's endpoint a new signing secret. During RotationOverlap both
// sign: webhook-signature has two signatures; X-Webhook-Signature, which can hold only
// one, has the old secret's until then. The returned endpoint has the new secret and
// PreviousUntil.
//
// A rotation while another is under way is an sms.Refusal, because receivers might
// know neither of the two valid secrets. Call EndRotation first.
func (w *Webhooks) Rotate(ctx context.Context, company sms.CompanyID) (e Endpoint, err error) {
	err = w.changeEndpoint(ctx, company, func(tx pgx.Tx, now Endpoint) error {
		if now.PreviousUntil != nil {
			return newRefusal(BadRotation, "The signing secret was changed less than a day ago: both are valid until %s.", now.PreviousUntil.UTC().Format(timestampLayout))
		}
		e = now
		e.Secret = newSecret()
		return tx.QueryRow(ctx, `
			UPDATE webhook_endpoints SET previous_secret = secret, previous_until = now() + $3::interval, secret = $2, updated_at = now()
			WHERE company_id = $1 RETURNING previous_until, updated_at`,
			int64(company), w.vault.Seal(int64(company), e.Secret), RotationOverlap).Scan(&e.PreviousUntil, &e.UpdatedAt)
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("rotating the webhook secret of company %d: %w", company, err)
	}
	return e, nil
}

// EndRotation ends a rotation early: the previous secret stops signing. Without a
// rotation under way it changes nothing.
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

// changeEndpoint calls change while it holds the lock of a company's endpoint.
func (w *Webhooks) changeEndpoint(ctx context.Context, company sms.CompanyID, change func(tx pgx.Tx, now Endpoint) error) error {
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := lockEndpoint(ctx, tx, int64(company)); err != nil {
			return err
		}
		now, err := w.endpoint(ctx, tx, int64(company))
		if err != nil && !errors.Is(err, vault.ErrNoKey) && !errors.Is(err, vault.ErrWrongKey) { // a secret that cannot be decrypted can be replaced
			return err
		}
		return change(tx, now)
	})
	if err != nil {
		return err
	}
	w.wake(int64(company), want{changed: true})
	return nil
}

// lockEndpoint serializes changes of a company's endpoint, also while it has no row
// yet.
func lockEndpoint(ctx context.Context, tx pgx.Tx, company int64) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('webhook_endpoints', $1))`, company)
	return err
}
