package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/configs"
	"intumwa/internal/postgres"
)

// openSessions opens the pool that leads past a pooler, for what needs a session: few
// connections, most of them outside the pool (postgres.Connect).
func openSessions(ctx context.Context, c *configs.Database, primary *postgres.Primary) (*pgxpool.Pool, error) {
	pool, err := postgres.Open(ctx, string(c.Sessions()), postgres.Options{MaxConns: 2, Primary: primary})
	return pool, sessionError(c, err)
}

// openDatabase opens a pool at database.url, which may lead to a pooler.
func openDatabase(ctx context.Context, c *configs.Database, opts postgres.Options) (*pgxpool.Pool, error) {
	opts.Pooler = c.Pooled()
	pool, err := postgres.Open(ctx, string(c.Whole()), opts)
	return pool, databaseError(c, "database.url", err)
}

// oneDatabase makes sure that both URLs lead to one database.
func oneDatabase(ctx context.Context, c *configs.Database, sessions, pool *pgxpool.Pool) error {
	err := postgres.Together(ctx, sessions, pool)
	if errors.Is(err, postgres.ErrElsewhere) {
		return fmt.Errorf("database.session_url and database.url: %w", err)
	}
	return databaseError(c, "database.url", err)
}

// sessionError is databaseError for the key that says where sessions are.
func sessionError(c *configs.Database, err error) error {
	if c.Pooled() {
		return databaseError(c, "database.session_url", err)
	}
	return databaseError(c, "database.url", err)
}

// databaseError says of an error by which key it came, and what to write where a pooler
// is in between.
func databaseError(c *configs.Database, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, postgres.ErrPooled) && !c.Pooled():
		return fmt.Errorf("%s: %w; let database.session_url lead to PostgreSQL itself, past the pooler", key, err)
	case errors.Is(err, postgres.ErrPooled):
		return fmt.Errorf("%s: %w; it must lead to PostgreSQL itself, past the pooler", key, err)
	case errors.Is(err, postgres.ErrNoTransactions):
		return fmt.Errorf("%s: %w: set it to pool_mode = transaction", key, err)
	case c.Pooled():
		return fmt.Errorf("%s: %w", key, err)
	}
	return err
}

// unfitDatabase says that a database was reached, and cannot be used as it is set up.
func unfitDatabase(err error) bool {
	return slices.ContainsFunc([]error{errUnsafe, postgres.ErrPooled, postgres.ErrNoTransactions, postgres.ErrElsewhere},
		func(kind error) bool { return errors.Is(err, kind) })
}
