package verifications

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Kept is how long a verification and a customer's feedback are kept.
const Kept = 30 * 24 * time.Hour

// purgeStep is how many rows one call of Purge deletes of each table.
const purgeStep = 5000

// List returns a company's verifications before an id (0: the newest), the newest first.
func (s *Store) List(ctx context.Context, company sms.CompanyID, before int64, limit int) ([]Verification, error) {
	return postgres.All(ctx, s.db, "listing verifications", scan,
		`SELECT `+columns+` FROM verifications v WHERE v.company_id = $1 AND ($2::bigint = 0 OR v.id < $2) ORDER BY v.id DESC
			LIMIT $3`, int64(company), before, limit)
}

// OfNumber returns the verifications of a number, of all companies, the oldest first.
func (s *Store) OfNumber(ctx context.Context, number sms.Number) ([]Verification, error) {
	return postgres.All(ctx, s.db, "reading a number's verifications", scan,
		`SELECT `+columns+` FROM verifications v WHERE v.phone_number = $1 ORDER BY v.id LIMIT 10000`, string(number))
}

// Erase deletes the verifications of a number that are not pending. It returns how many, and how many are.
func Erase(ctx context.Context, tx pgx.Tx, number sms.Number) (erased, pending int64, err error) {
	err = tx.QueryRow(ctx, `WITH gone AS (DELETE FROM verifications WHERE phone_number = $1 AND state <> 0 RETURNING 1)
		SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM verifications WHERE phone_number = $1 AND state = 0)`,
		string(number)).Scan(&erased, &pending)
	if err != nil {
		return 0, 0, fmt.Errorf("erasing a number's verifications: %w", err)
	}
	return erased, pending, nil
}

// Purge deletes a step of what is older than Kept. It returns whether there may be more.
func (s *Store) Purge(ctx context.Context) (more bool, err error) {
	for _, statement := range []string{
		`DELETE FROM verifications WHERE id IN (SELECT id FROM verifications WHERE created_at < now() - $1::interval
			AND state <> 0 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
		`DELETE FROM feedback WHERE message_id IN (SELECT message_id FROM feedback WHERE at < now() - $1::interval ORDER BY at
			LIMIT $2 FOR UPDATE SKIP LOCKED)`,
	} {
		tag, err := s.db.Exec(ctx, statement, Kept, purgeStep)
		if err != nil {
			return false, err
		}
		more = more || tag.RowsAffected() == purgeStep
	}
	return more, nil
}
