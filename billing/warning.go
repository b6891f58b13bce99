package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

const (
	// warningPause is the shortest time between two warnings of a company: a balance
	// that refunds and sends move up and down around the threshold is warned about once.
	warningPause = time.Hour
	// warningsAtOnce is how many companies one call of TakeWarnings returns at most.
	warningsAtOnce = 100
)

// Warning means that a company's balance has fallen below its threshold.
type Warning struct {
	Company   sms.CompanyID
	Threshold int64 // credits
	Credits   int64 // the balance
}

// Threshold returns below how many credits a company's owner is warned; 0: never.
func (l *Ledger) Threshold(ctx context.Context, company sms.CompanyID) (threshold int64, err error) {
	err = l.pool.QueryRow(ctx, `SELECT threshold FROM balance_warnings WHERE company_id = $1`, int64(company)).Scan(&threshold)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("reading the threshold of company %d: %w", company, err)
	}
	return threshold, nil
}

// SetThreshold sets below how many credits a company's owner is warned; 0: never. After
// a change the owner is warned again, even if the balance was below the old threshold
// too.
func (l *Ledger) SetThreshold(ctx context.Context, company sms.CompanyID, threshold int64) (err error) {
	if threshold <= 0 {
		_, err = l.pool.Exec(ctx, `DELETE FROM balance_warnings WHERE company_id = $1`, int64(company))
	} else {
		_, err = l.pool.Exec(ctx, `INSERT INTO balance_warnings AS w (company_id, threshold) VALUES ($1, $2)
			ON CONFLICT (company_id) DO UPDATE SET threshold = excluded.threshold, told_at = NULL
			WHERE w.threshold <> excluded.threshold`, int64(company), threshold)
	}
	if err != nil {
		return fmt.Errorf("storing the threshold of company %d: %w", company, err)
	}
	return nil
}

// TakeWarnings returns the companies whose balance has fallen below their threshold,
// and marks them as warned. The caller writes the mails in the same tx, so each warning
// is given exactly once. The next warning of a company comes only after its balance was
// seen at the threshold or above, at least an hour after this one.
func TakeWarnings(ctx context.Context, tx pgx.Tx) (warnings []Warning, err error) {
	_, err = tx.Exec(ctx, `UPDATE balance_warnings SET told_at = NULL WHERE company_id IN (
		SELECT w.company_id FROM balance_warnings w JOIN balances b USING (company_id)
		WHERE w.told_at < now() - $1::interval AND b.credits >= w.threshold
		FOR UPDATE OF w SKIP LOCKED)`, warningPause)
	if err != nil {
		return nil, fmt.Errorf("looking for balances that have recovered: %w", err)
	}
	rows, err := tx.Query(ctx, `UPDATE balance_warnings w SET told_at = now() FROM (
			SELECT w.company_id, b.credits FROM balance_warnings w JOIN balances b USING (company_id)
			WHERE w.told_at IS NULL AND b.credits < w.threshold
			ORDER BY w.company_id LIMIT $1 FOR UPDATE OF w SKIP LOCKED
		) low WHERE low.company_id = w.company_id RETURNING w.company_id, w.threshold, low.credits`, warningsAtOnce)
	if err == nil {
		warnings, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Warning])
	}
	if err != nil {
		return nil, fmt.Errorf("looking for low balances: %w", err)
	}
	return warnings, nil
}
