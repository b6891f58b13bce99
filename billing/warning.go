package billing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

const (
	// mailPause is the shortest time between two mails about a threshold, for a balance that goes up and down around it.
	mailPause = time.Hour
	// warningsAtOnce is how many companies one call of TakeWarnings returns at most.
	warningsAtOnce = 100
)

// Warning is a company's balance that has fallen below one of its thresholds.
type Warning struct {
	Company   sms.CompanyID
	Threshold int64 // credits
	Credits   int64 // the balance
	Number    int64 // of this crossing, unique: from the sequence of messages
	At        time.Time
	Mail      bool // the owner gets a mail too
}

// maxThresholds is how many thresholds a company may have.
const maxThresholds = 5

// ErrThresholds is returned for too many thresholds.
var ErrThresholds = fmt.Errorf("a company has at most %d thresholds", maxThresholds)

// Thresholds returns the credits below which a company is warned, the highest first.
func (l *Ledger) Thresholds(ctx context.Context, company sms.CompanyID) ([]int64, error) {
	return Thresholds(ctx, l.pool, company)
}

// Thresholds is [Ledger.Thresholds] in a transaction, or on a pool.
func Thresholds(ctx context.Context, db postgres.Querier, company sms.CompanyID) ([]int64, error) {
	return postgres.All(ctx, db, fmt.Sprintf("reading the thresholds of company %d", company), pgx.RowTo[int64],
		`SELECT threshold FROM balance_warnings WHERE company_id = $1 ORDER BY threshold DESC`, int64(company))
}

// SetThresholds sets the credits below which a company is warned, by webhook and by a mail to its owner; none: never. A
// new threshold above the balance causes a warning at once. ErrThresholds when there are more than five.
func (l *Ledger) SetThresholds(ctx context.Context, company sms.CompanyID, thresholds ...int64) error {
	return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error { return SetThresholds(ctx, tx, company, thresholds...) })
}

// SetThresholds is [Ledger.SetThresholds] in the caller's transaction.
func SetThresholds(ctx context.Context, tx pgx.Tx, company sms.CompanyID, thresholds ...int64) error {
	thresholds = append([]int64{}, thresholds...) // not nil, which would be NULL
	slices.Sort(thresholds)
	thresholds = slices.Compact(thresholds)
	if len(thresholds) > maxThresholds {
		return ErrThresholds
	}
	_, err := tx.Exec(ctx, `DELETE FROM balance_warnings WHERE company_id = $1 AND threshold <> ALL($2)`, int64(company),
		thresholds)
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO balance_warnings (company_id, threshold) SELECT $1, unnest($2::bigint[])
			ON CONFLICT DO NOTHING`,
			int64(company), thresholds)
	}
	if err != nil {
		return fmt.Errorf("storing the thresholds of company %d: %w", company, err)
	}
	return nil
}

// TakeWarnings returns the companies whose balance was seen below a threshold for the first time since it was at it or
// above, and records that. The caller must send the warnings in the same tx, so each crossing is reported exactly once;
// by mail only if Mail is set, at most once an hour.
func TakeWarnings(ctx context.Context, tx pgx.Tx) (warnings []Warning, err error) {
	_, err = tx.Exec(ctx, `UPDATE balance_warnings w SET low = false FROM (
			SELECT w.company_id, w.threshold FROM balance_warnings w JOIN balances b USING (company_id)
			WHERE w.low AND b.credits >= w.threshold
			ORDER BY w.company_id, w.threshold DESC FOR UPDATE OF w SKIP LOCKED
		) high WHERE w.company_id = high.company_id AND w.threshold = high.threshold`)
	if err != nil {
		return nil, fmt.Errorf("looking for balances that have recovered: %w", err)
	}
	return postgres.All(ctx, tx, "looking for low balances", pgx.RowToStructByPos[Warning],
		`UPDATE balance_warnings w SET low = true,
			told_at = CASE WHEN w.told_at > now() - $2::interval THEN w.told_at ELSE now() END
		FROM (
			SELECT w.company_id, w.threshold, b.credits FROM balance_warnings w JOIN balances b USING (company_id)
			WHERE NOT w.low AND b.credits < w.threshold
			ORDER BY w.company_id, w.threshold DESC LIMIT $1 FOR UPDATE OF w SKIP LOCKED
		) crossed WHERE w.company_id = crossed.company_id AND w.threshold = crossed.threshold
		RETURNING w.company_id, w.threshold, crossed.credits, nextval('messages_id_seq'), now(), w.told_at = now()`,
		warningsAtOnce, mailPause)
}
