package main

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/configs"
	"intumwa/internal/postgres"
)

// pools are a serving process's connections to the database, by purpose.
type pools struct {
	general *pgxpool.Pool // requests, pages, background tasks
	batch   *pgxpool.Pool // statements over many rows
	lookups *pgxpool.Pool // customers' look-ups, apart from sends
	probing *pgxpool.Pool // health probes only
	opened  []*pgxpool.Pool
}

// lookupTimeout bounds a look-up statement; past it the answer is 503. One slow query must not hold the few
// connections.
const lookupTimeout = 2 * time.Second

// openPools opens the pools; the caller closes them.
func openPools(ctx context.Context, c *configs.Database, primary *postgres.Primary) (*pools, error) {
	p := new(pools)
	for _, next := range []struct {
		pool    **pgxpool.Pool
		options postgres.Options
	}{
		{&p.general, postgres.Options{}},
		{&p.batch, postgres.Options{BatchUpdates: true}},
		{&p.lookups, postgres.Options{MaxConns: int32(lookupConnections()), StatementTimeout: lookupTimeout, Lookups: true}},
		{&p.probing, postgres.Options{MaxConns: 1}},
	} {
		next.options.Primary = primary
		pool, err := postgres.Open(ctx, string(c.URL), next.options)
		if err != nil {
			p.close()
			return nil, err
		}
		*next.pool, p.opened = pool, append(p.opened, pool)
	}
	return p, nil
}

func (p *pools) close() {
	for _, pool := range slices.Backward(p.opened) {
		pool.Close()
	}
}
