package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Spender is what one company's sends took of its balance in a time.
type Spender struct {
	CompanyID int64
	Credits   int64 // segments
	Requests  int64
}

// spenderSlack is how much later than its time a row may have got its id.
const spenderSlack = time.Minute

// Spenders are the companies whose sends took the most credits since then, the largest first, and what all companies'
// took. It reads the rows of that time alone: their ids grow with time, so the first is found in some forty look-ups by
// the primary key, however long the ledger is. One row is one request, a batch as well.
func (l *Ledger) Spenders(ctx context.Context, since time.Time, limit int) (list []Spender, all int64, err error) {
	from, err := l.firstSince(ctx, since.Add(-spenderSlack))
	if err != nil {
		return nil, 0, fmt.Errorf("looking for the first row since %s: %w", since.Format(time.RFC3339), err)
	}
	rows, err := l.pool.Query(ctx, `SELECT company_id, -sum(amount)::bigint, count(*), (-sum(sum(amount)) OVER ())::bigint FROM ledger
		WHERE id >= $1 AND kind = 'send' AND created_at >= $2 GROUP BY company_id ORDER BY 2 DESC, 1 LIMIT $3`, from, since, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("adding up what companies sent: %w", err)
	}
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Spender, err error) {
		err = row.Scan(&s.CompanyID, &s.Credits, &s.Requests, &all)
		return s, err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("adding up what companies sent: %w", err)
	}
	return list, all, nil
}

// firstSince is an id before which every row is older than then.
func (l *Ledger) firstSince(ctx context.Context, then time.Time) (int64, error) {
	var low, high int64 // rows below low are older; from high on they are not
	if err := l.pool.QueryRow(ctx, `SELECT coalesce(min(id), 0), coalesce(max(id), 0) + 1 FROM ledger`).Scan(&low, &high); err != nil {
		return 0, err
	}
	for low < high {
		middle := low + (high-low)/2
		var id int64
		var older bool
		err := l.pool.QueryRow(ctx, `SELECT id, created_at < $2 FROM ledger WHERE id >= $1 ORDER BY id LIMIT 1`, middle, then).Scan(&id, &older)
		switch {
		case errors.Is(err, pgx.ErrNoRows) || err == nil && !older:
			high = middle
		case err != nil:
			return 0, err
		default:
			low = id + 1
		}
	}
	return low, nil
}
