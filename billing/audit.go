package billing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Audit proves the ledger: it counts the companies and those of them whose
// balance is not the sum of its ledger or whose ledger has a gap (a row whose
// balance_after does not continue the row before it). It reads everything and
// may take minutes on a large ledger.
func (l *Ledger) Audit(ctx context.Context) (companies, mismatches int64, err error) {
	err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return fmt.Errorf("taking time: %w", err)
		}
		return tx.QueryRow(ctx, `
			WITH chain AS (
				SELECT company_id, amount,
					balance_after <> amount + coalesce(lag(balance_after) OVER (PARTITION BY company_id ORDER BY id), 0) AS gap
				FROM ledger
			), sums AS (
				SELECT company_id, sum(amount) AS total, bool_or(gap) AS gap FROM chain GROUP BY company_id
			)
			SELECT count(*), count(*) FILTER (WHERE coalesce(b.credits, -1) <> coalesce(s.total, 0) OR coalesce(s.gap, false))
			FROM balances b FULL JOIN sums s USING (company_id)`).Scan(&companies, &mismatches)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("auditing the ledger: %w", err)
	}
	return companies, mismatches, nil
}
