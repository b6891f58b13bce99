package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"intumwa/acts"
	"intumwa/internal/postgres"
)

// change lets work change something and records what it did, in one
// transaction: either both are there or neither. What work reads as it was is
// what it changes: when somebody else has changed it meanwhile, work is done
// again.
func (o *operator) change(ctx context.Context, work func(tx pgx.Tx) (acts.Entry, error)) error {
	return o.changeIn(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, work)
}

// changeBusy is change for rows that are written all the time, which work locks
// before it reads them.
func (o *operator) changeBusy(ctx context.Context, work func(tx pgx.Tx) (acts.Entry, error)) error {
	return o.changeIn(ctx, pgx.TxOptions{}, work)
}

func (o *operator) changeIn(ctx context.Context, options pgx.TxOptions, work func(tx pgx.Tx) (acts.Entry, error)) error {
	return postgres.Retry(ctx, func() error {
		return pgx.BeginTxFunc(ctx, o.pool, options, func(tx pgx.Tx) error {
			entry, err := work(tx)
			if err != nil {
				return err
			}
			entry.Actor = acts.Operator()
			return acts.Record(ctx, tx, entry)
		})
	})
}
