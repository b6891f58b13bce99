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

// Period is what a company's ledger has of a time. Always
//
//	Opening + purchases + corrections + refunds − usage = Closing
//
// and the closing balance of a period is the opening balance of the next one. A row belongs to the period of its
// created_at, which is that of its messages.
type Period struct {
	From, To         time.Time // from inclusive, to exclusive
	Opening, Closing int64     // credits
	Parts            []Part    // one for each price, in order of time
	Open             bool      // it is not over: a row may still come
}

// Part is a part of a period with one price: the credits of each kind, all as positive numbers except that corrections
// may be negative.
type Part struct {
	From, To    time.Time
	Price       *Centimes // of a credit; nil: none is known
	Purchases   int64     // adjustments
	Corrections int64     // adjustments that are no purchase
	Refunds     int64
	Usage       int64 // of sends
}

// Amount returns the value of credits of the part, nil without a price. No credits are worth nothing, whatever the
// price.
func (p *Part) Amount(credits int64) *Money { return p.Price.Amount(credits) }

// Amount is [Centimes.Of] a price that may be unknown: nil then, unless n is 0.
func (c *Centimes) Amount(n int64) *Money {
	switch {
	case n == 0:
		return Centimes(0).Of(0)
	case c == nil:
		return nil
	}
	return c.Of(n)
}

// Sum adds up the parts' credits, and their value at the price of each: nil if a part with such credits has no price.
func (p *Period) Sum(of func(*Part) int64) (credits int64, amount *Money) {
	amount = Centimes(0).Of(0)
	for i := range p.Parts {
		n := of(&p.Parts[i])
		credits += n
		amount = amount.Plus(p.Parts[i].Amount(n))
	}
	return credits, amount
}

// Summary reads a company's period, with a part for each of its prices.
func (l *Ledger) Summary(ctx context.Context, company sms.CompanyID, from, to time.Time) (p Period, err error) {
	of, err := l.PricesOf(ctx, company)
	if err != nil {
		return p, err
	}
	cuts := of.cuts(from, to)
	p = Period{From: from, To: to, Parts: make([]Part, len(cuts)-1), Open: to.After(postgres.Now().Add(-statementSkew))}
	err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			balances, ids, err := balancesAt(ctx, tx, company, cuts)
			if err != nil {
				return err
			}
			p.Opening, p.Closing = balances[0], balances[len(balances)-1]
			for i := range p.Parts {
				p.Parts[i] = Part{From: cuts[i], To: cuts[i+1], Price: of.At(cuts[i]), Usage: balances[i] - balances[i+1]}
			}
			var part int
			var purchases, corrections, refunds int64
			return postgres.Each(ctx, tx, fmt.Sprintf("adding up the ledger of company %d", company),
				[]any{&part, &purchases, &corrections, &refunds}, func() error {
					of := &p.Parts[part-1]
					of.Purchases, of.Corrections, of.Refunds = purchases, corrections, refunds
					of.Usage += purchases + corrections + refunds
					return nil
				}, `SELECT width_bucket(created_at, $4::timestamptz[]), coalesce(sum(amount) FILTER (WHERE kind = 'adjustment'
			AND amount > 0), 0)::bigint,
				coalesce(sum(amount) FILTER (WHERE kind = 'correction' OR kind = 'adjustment' AND amount < 0), 0)::bigint,
				coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0)::bigint
			FROM ledger WHERE company_id = $1 AND kind <> 'send' AND id >= $2 AND id < $3 AND created_at >= $5
			AND created_at < $6 GROUP BY 1`,
				int64(company), ids[0].from, ids[len(ids)-1].to, cuts, from, to)
		})
	return p, err
}

// edge is the range of a company's ids in which a time is: rows below from are earlier, those at to and above are not.
type edge struct{ from, to int64 }

// balancesAt returns a company's balance at each time: after all rows that were created before it.
func balancesAt(ctx context.Context, db postgres.DB, company sms.CompanyID, times []time.Time) (balances []int64,
	edges []edge, err error) {
	if edges, err = edgesOf(ctx, db, company, times); err != nil {
		return nil, nil, err
	}
	from, to := make([]int64, len(edges)), make([]int64, len(edges))
	for i, e := range edges {
		from[i], to[i] = e.from, e.to
	}
	// Transactions that wait for each other are booked in another order than they began.
	balances, err = postgres.All(ctx, db, fmt.Sprintf("reading balances of company %d", company), pgx.RowTo[int64], `
		SELECT coalesce((SELECT balance_after FROM ledger WHERE company_id = $1 AND id < e.first ORDER BY id DESC LIMIT 1), 0)
			+ coalesce((SELECT sum(amount)::bigint FROM ledger WHERE company_id = $1 AND id >= e.first AND id < e.beyond
			AND created_at < e.at), 0)
		FROM unnest($2::bigint[], $3::bigint[], $4::timestamptz[]) WITH ORDINALITY e(first, beyond, at, n) ORDER BY n`,
		int64(company), from, to, times)
	return balances, edges, err
}

// edgesOf finds the range of ids around each time. created_at has no index, because ids grow with it: a binary search
// over the company's ids reads about forty rows by their key.
func edgesOf(ctx context.Context, db postgres.DB, company sms.CompanyID, times []time.Time) ([]edge, error) {
	around := make([]time.Time, 0, 2*len(times))
	for _, at := range times {
		around = append(around, at.Add(-statementSkew), at.Add(statementSkew))
	}
	ids, err := postgres.All(ctx, db, "looking for the ledger rows of a period", pgx.RowTo[int64], `
		WITH RECURSIVE ends AS MATERIALIZED (
			SELECT coalesce((SELECT id FROM ledger WHERE company_id = $1 ORDER BY id LIMIT 1), 0) AS low,
				coalesce((SELECT id FROM ledger WHERE company_id = $1 ORDER BY id DESC LIMIT 1), 0) + 1 AS high
		), search(n, at, low, high) AS (
			SELECT n, at, low, high FROM unnest($2::timestamptz[]) WITH ORDINALITY t(at, n), ends
			UNION ALL
			SELECT s.n, s.at, CASE WHEN r.created_at < s.at THEN r.id + 1 ELSE s.low END, CASE WHEN r.created_at < s.at
				THEN s.high ELSE s.low + (s.high - s.low) / 2 END
			FROM search s LEFT JOIN LATERAL (SELECT id, created_at FROM ledger
				WHERE company_id = $1 AND id >= s.low + (s.high - s.low) / 2 ORDER BY id LIMIT 1) r ON true
			WHERE s.low < s.high
		)
		SELECT low FROM search WHERE low >= high ORDER BY n`, int64(company), around)
	if err != nil {
		return nil, err
	}
	edges := make([]edge, 0, len(times))
	for pair := range slices.Chunk(ids, 2) {
		edges = append(edges, edge{pair[0], pair[1]})
	}
	return edges, nil
}
