package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Querier is a pool, a connection or a transaction, for a function that reads rows.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// DB is a pool or a transaction.
type DB interface {
	Querier
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// All returns all rows of a query. doing names the work in errors.
func All[T any](ctx context.Context, db Querier, doing string, scan pgx.RowToFunc[T], query string, args ...any) (
	[]T, error) {
	rows, err := db.Query(ctx, query, args...)
	var all []T
	if err == nil {
		all, err = pgx.CollectRows(rows, scan)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return all, nil
}

// Each scans each row of a query into targets and calls do. doing names the work in errors.
func Each(ctx context.Context, db Querier, doing string, targets []any, do func() error, query string,
	args ...any) error {
	rows, err := db.Query(ctx, query, args...)
	if err == nil {
		_, err = pgx.ForEachRow(rows, targets, do)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// EachQueued is [Each] for a query of a pipeline: it runs when the pipeline's results are read.
func EachQueued(query *pgx.QueuedQuery, targets []any, do func() error) {
	query.Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, targets, do)
		return err
	})
}
