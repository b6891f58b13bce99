package billing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Spender is a company with the credits of its sends in a period.
type Spender struct {
	CompanyID int64
	Credits   int64 // segments
	Requests  int64
}

// spenderPage is how many rows of a company's ledger are read at a time.
const spenderPage = 10_000

// Spenders returns the companies whose sends took the most credits since a time, the largest first, and the credits of
// all companies' sends. It reads each company's ledger from its end: the rows since that time and at most one page more.
// A row is one request, single or batch.
func (l *Ledger) Spenders(ctx context.Context, since time.Time, limit int) (list []Spender, all int64, err error) {
	companies, err := postgres.All(ctx, l.pool, "looking for companies that sent", pgx.RowTo[int64],
		`SELECT b.company_id FROM balances b,
		LATERAL (SELECT created_at FROM ledger WHERE company_id = b.company_id ORDER BY id DESC LIMIT 1) newest
		WHERE newest.created_at >= $1 ORDER BY 1`, since.Add(-statementSkew))
	if err != nil {
		return nil, 0, err
	}
	for _, company := range companies {
		s := Spender{CompanyID: company}
		for before, more := int64(1)<<62, true; more; {
			var credits, requests int64
			err := l.pool.QueryRow(ctx, `SELECT coalesce(-sum(amount) FILTER (WHERE kind = 'send' AND created_at >= $3), 0)::bigint,
					count(*) FILTER (WHERE kind = 'send' AND created_at >= $3), coalesce(min(id), 0), count(*) = $4 AND min(created_at) >= $5
				FROM (SELECT id, kind, amount, created_at FROM ledger WHERE company_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4) page`,
				company, before, since, spenderPage, since.Add(-statementSkew)).Scan(&credits, &requests, &before, &more)
			if err != nil {
				return nil, 0, fmt.Errorf("adding up what company %d sent: %w", company, err)
			}
			s.Credits, s.Requests = s.Credits+credits, s.Requests+requests
		}
		if s.Requests > 0 {
			list, all = append(list, s), all+s.Credits
		}
	}
	slices.SortStableFunc(list, func(a, b Spender) int { return int(b.Credits - a.Credits) })
	return list[:min(limit, len(list))], all, nil
}
