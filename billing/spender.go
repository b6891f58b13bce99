package billing

import (
	"cmp"
	"context"
	"maps"
	"math"
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

// How many rows of a company's ledger are read at a time, first and at most, and how many of all companies in one
// statement.
const (
	spenderPage = 100
	spenderMost = 10_000
	spenderRows = 100_000
)

// Spenders returns the companies whose sends took the most credits since a time, the largest first, and the credits of
// all companies' sends. It reads each company's ledger from its end: at most some hundred rows, or a few times those
// since that time. A row is one request, single or batch.
func (l *Ledger) Spenders(ctx context.Context, since time.Time, limit int) (list []Spender, all int64, err error) {
	companies, err := postgres.All(ctx, l.pool, "looking for companies that sent", pgx.RowTo[int64],
		`SELECT b.company_id FROM balances b,
		LATERAL (SELECT created_at FROM ledger WHERE company_id = b.company_id ORDER BY id DESC LIMIT 1) newest
		WHERE newest.created_at >= $1 ORDER BY 1`, since.Add(-statementSkew))
	if err != nil {
		return nil, 0, err
	}
	spent, before := make(map[int64]Spender, len(companies)), make(map[int64]int64, len(companies))
	for page := spenderPage; len(companies) > 0; page = min(4*page, spenderMost) {
		var unread []int64
		for some := range slices.Chunk(companies, spenderRows/page) {
			from := make([]int64, len(some))
			for i, company := range some {
				from[i] = cmp.Or(before[company], math.MaxInt64)
			}
			var s Spender
			var last int64
			var more bool
			if err := postgres.Each(ctx, l.pool, "adding up what companies sent",
				[]any{&s.CompanyID, &s.Credits, &s.Requests, &last, &more}, func() error {
					if before[s.CompanyID] = last; more {
						unread = append(unread, s.CompanyID)
					}
					was := spent[s.CompanyID]
					spent[s.CompanyID] = Spender{s.CompanyID, was.Credits + s.Credits, was.Requests + s.Requests}
					return nil
				}, `SELECT u.company, p.* FROM unnest($1::bigint[], $2::bigint[]) u(company, before) CROSS JOIN LATERAL (
					SELECT coalesce(-sum(amount) FILTER (WHERE kind = 'send' AND created_at >= $3), 0)::bigint,
						count(*) FILTER (WHERE kind = 'send' AND created_at >= $3), coalesce(min(id), 0), count(*) = $4
						AND min(created_at) >= $5
					FROM (SELECT id, kind, amount, created_at FROM ledger WHERE company_id = u.company AND id < u.before
					ORDER BY id DESC LIMIT $4) page
				) p`, some, from, since, page, since.Add(-statementSkew)); err != nil {
				return nil, 0, err
			}
		}
		companies = unread
	}
	for _, company := range slices.Sorted(maps.Keys(spent)) {
		if s := spent[company]; s.Requests > 0 {
			list, all = append(list, s), all+s.Credits
		}
	}
	slices.SortStableFunc(list, func(a, b Spender) int { return cmp.Compare(b.Credits, a.Credits) })
	return list[:min(limit, len(list))], all, nil
}
