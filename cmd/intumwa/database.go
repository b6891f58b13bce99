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

// pools are a serving process's connections to the database, by what takes them.
type pools struct {
	general  *pgxpool.Pool // requests, pages, tasks
	batch    *pgxpool.Pool // statements over many rows
	lookups  *pgxpool.Pool // what customers look up has no part in the connections of the sends
	probing  *pgxpool.Pool // whether the database is there is asked on a connection that nobody else takes
	sessions *pgxpool.Pool // what needs a session for itself; general, but where a pooler is in between
	opened   []*pgxpool.Pool
}

// openPools opens them; the caller closes them. The pool past a pooler is the first, so that
// primary is known to the others.
func openPools(ctx context.Context, c *configs.Database, primary *postgres.Primary) (*pools, error) {
	p := new(pools)
	if c.Pooled() {
		past, err := openSessions(ctx, c, primary)
		if err != nil {
			return nil, err
		}
		p.sessions, p.opened = past, append(p.opened, past)
	}
	connections := int32(c.MaxConnections)
	for _, next := range []struct {
		pool    **pgxpool.Pool
		options postgres.Options
	}{
		{&p.general, postgres.Options{MaxConns: connections}},
		{&p.batch, postgres.Options{MaxConns: connections, BatchUpdates: true}},
		{&p.lookups, postgres.Options{MaxConns: lookupConnections(c), StatementTimeout: c.LookupTimeout, BatchUpdates: true}},
		{&p.probing, postgres.Options{MaxConns: 1}},
	} {
		next.options.Primary = primary
		pool, err := openDatabase(ctx, c, next.options)
		if err != nil {
			p.close()
			return nil, err
		}
		*next.pool, p.opened = pool, append(p.opened, pool)
	}
	if p.sessions == nil {
		p.sessions = p.general
	} else if err := oneDatabase(ctx, c, p.sessions, p.general); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// close closes them, the last first.
func (p *pools) close() {
	for _, pool := range slices.Backward(p.opened) {
		pool.Close()
	}
}

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
