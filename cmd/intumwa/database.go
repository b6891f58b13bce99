package main

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/configs"
	"intumwa/internal/postgres"
)

// pools are a serving process's connections to the database, by what takes them.
type pools struct {
	general *pgxpool.Pool // requests, pages, tasks
	batch   *pgxpool.Pool // statements over many rows
	lookups *pgxpool.Pool // what customers look up has no part in the connections of the sends
	probing *pgxpool.Pool // whether the database is there is asked on a connection that nobody else takes
	opened  []*pgxpool.Pool
}

// openPools opens them; the caller closes them.
func openPools(ctx context.Context, c *configs.Database, primary *postgres.Primary) (*pools, error) {
	p := new(pools)
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
		pool, err := postgres.Open(ctx, string(c.Whole()), next.options)
		if err != nil {
			p.close()
			return nil, err
		}
		*next.pool, p.opened = pool, append(p.opened, pool)
	}
	return p, nil
}

// close closes them, the last first.
func (p *pools) close() {
	for _, pool := range slices.Backward(p.opened) {
		pool.Close()
	}
}
