package accounts

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// database is a pool, or a transaction in which more is to be done.
type database interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// In is the room within the caller's transaction: its verbs happen together with what else the caller does there, such
// as recording the act, or not at all. What is kept in memory is not used by it.
func (a *Accounts) In(tx pgx.Tx) *Accounts {
	in := *a
	in.pool = tx
	return &in
}
