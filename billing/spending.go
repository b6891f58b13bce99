package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// spending is what a company's debits have taken on a day.
type spending struct {
	on      time.Time
	credits int64
}

// burundi is the day that it is in Burundi, which keeps UTC+2, when the transaction
// began.
const burundi = `((now() AT TIME ZONE 'UTC') + interval '2 hours')::date`

// spendingColumns are the day that counts and what was taken on it. A transaction that
// began before midnight and got the lock after one that began behind it counts for the
// new day: what was taken never goes back. A day further ahead is a clock's that was
// wrong.
const spendingColumns = `CASE WHEN spent_on = ` + burundi + ` + 1 THEN spent_on ELSE ` + burundi + ` END,
	CASE WHEN spent_on BETWEEN ` + burundi + ` AND ` + burundi + ` + 1 THEN spent ELSE 0 END`

// lockSpending does what lock does and reads what the companies have spent.
func lockSpending(ctx context.Context, tx pgx.Tx, companies []int64) (map[int64]int64, map[int64]*spending, error) {
	balances, spendings := make(map[int64]int64, len(companies)), make(map[int64]*spending, len(companies))
	batch := &pgx.Batch{}
	batch.Queue(`SELECT b.* FROM unnest($1::bigint[]) u(company_id)
			CROSS JOIN LATERAL (SELECT company_id, credits, `+spendingColumns+` `+youngestBalance+` FOR UPDATE) b`, companies).
		Query(func(rows pgx.Rows) error {
			var id, credits, spent int64
			var on time.Time
			_, err := pgx.ForEachRow(rows, []any{&id, &credits, &on, &spent}, func() error {
				balances[id], spendings[id] = credits, &spending{on: on, credits: spent}
				return nil
			})
			return err
		})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, nil, fmt.Errorf("locking balances: %w", err)
	}
	return balances, spendings, nil
}

// SpentToday returns the credits that a company's sends have taken on this day of
// Burundi; refunds are not taken off.
func (l *Ledger) SpentToday(ctx context.Context, company sms.CompanyID) (credits int64, err error) {
	err = l.pool.QueryRow(ctx, `SELECT CASE WHEN spent_on >= `+burundi+` THEN spent ELSE 0 END FROM balances WHERE company_id = $1`, int64(company)).Scan(&credits)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("reading what company %d has spent: %w", company, err)
	}
	return credits, nil
}
