package dashboard

import (
	"context"

	"github.com/jackc/pgx/v5"

	"intumwa/acts"
	"intumwa/internal/postgres"
)

// change does an administrator's act and records it, in one transaction: either both are there or neither. What work
// reads as it was is what it changes: when somebody else has changed it meanwhile, work is done again, and what it has
// set outside itself it sets anew.
func (d *Dashboard) change(ctx context.Context, o operator, work func(tx pgx.Tx) (acts.Entry, error)) error {
	return d.changeIn(ctx, o, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, work)
}

// changeBusy is change for rows that are written all the time, which work locks before it reads them.
func (d *Dashboard) changeBusy(ctx context.Context, o operator, work func(tx pgx.Tx) (acts.Entry, error)) error {
	return d.changeIn(ctx, o, pgx.TxOptions{}, work)
}

func (d *Dashboard) changeIn(ctx context.Context, o operator, options pgx.TxOptions, work func(tx pgx.Tx) (acts.Entry, error)) error {
	return postgres.Retry(ctx, func() error {
		return pgx.BeginTxFunc(ctx, d.rooms.Pool, options, func(tx pgx.Tx) error {
			entry, err := work(tx)
			if err != nil {
				return err
			}
			entry.Actor = acts.User(o.User.ID)
			return acts.Record(ctx, tx, entry)
		})
	})
}
