package billing

import (
	"context"
	"fmt"
)

// Audit proves the ledger: it counts the companies and those of them whose
// balance is not the sum of its ledger or whose ledger has a gap (a row whose
// balance_after does not continue the row before it).
func (l *Ledger) Audit(ctx context.Context) (companies, mismatches int64, err error) {
	err = l.pool.QueryRow(ctx, `
		WITH chain AS (
			SELECT company_id, amount,
				balance_after <> amount + coalesce(lag(balance_after) OVER (PARTITION BY company_id ORDER BY id), 0) AS gap
			FROM ledger
		), sums AS (
			SELECT company_id, sum(amount) AS total, bool_or(gap) AS gap FROM chain GROUP BY company_id
		)
		SELECT count(*), count(*) FILTER (WHERE coalesce(b.credits, -1) <> coalesce(s.total, 0) OR coalesce(s.gap, false))
		FROM balances b FULL JOIN sums s USING (company_id)`).Scan(&companies, &mismatches)
	if err != nil {
		return 0, 0, fmt.Errorf("auditing the ledger: %w", err)
	}
	return companies, mismatches, nil
}
