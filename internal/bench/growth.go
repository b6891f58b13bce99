package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"
)

// twinPrefix are the second carrier's recipients.
const twinPrefix = "+25762"

const (
	growthSends = 20_000 // messages of a load of the scenario growth
	fleetSends  = 12_000 // and of one of the scenario fleet
	aloneRate   = 100    // a second, so that hardly a message shares its transactions
	aloneSends  = 15 * aloneRate
	relayBulk   = 5_000
)

// playFleet measures what a message costs each role with one, two and three processes of
// it: on so few processors that all share, the costs count and not the rates.
func playFleet(ctx context.Context, b *bench, s scenario) error {
	for _, f := range fleets {
		if err := b.inFleet(ctx, s, f, fleetSends, nil); err != nil {
			return err
		}
	}
	return b.report.printFleets(os.Stdout, s.name)
}

// playGrowth does the same at more length and measures the other costs of docs/growth.md.
func playGrowth(ctx context.Context, b *bench, s scenario) error {
	for _, f := range fleets {
		more := func(w *world) error { return b.growthCosts(ctx, s, w) }
		if f != fleets[0] {
			more = nil
		}
		if err := b.inFleet(ctx, s, f, growthSends, more); err != nil {
			return err
		}
	}
	if err := errors.Join(b.growthDisk(ctx, s), b.growthNetwork(ctx, s)); err != nil {
		return err
	}
	if err := b.report.printCosts(os.Stdout, s.name); err != nil {
		return err
	}
	return b.report.printFleets(os.Stdout, s.name)
}

// inFleet measures n single sends in a fleet, then more, and has the books proved.
func (b *bench) inFleet(ctx context.Context, s scenario, f fleet, n int, more func(w *world) error) error {
	return b.inWorld(ctx, setup{endpoint: true, fleet: &f}, func(w *world) error {
		if err := b.load(ctx, w, s.name+" "+f.String(), "single sends, 64 connections, a webhook each", n, w.spread(n)); err != nil {
			return err
		}
		if more != nil {
			if err := more(w); err != nil {
				return err
			}
		}
		if err := w.audited(ctx); err != nil {
			return fmt.Errorf("%s %s: %w", s.name, f, err)
		}
		return nil
	})
}

// growthCosts are those of other loads than single sends as fast as they go.
func (b *bench) growthCosts(ctx context.Context, s scenario, w *world) error {
	if err := b.load(ctx, w, s.name+" bulk", "bulk of 500, a webhook each", growthSends, w.bulk(growthSends)); err != nil {
		return err
	}
	return b.load(ctx, w, s.name+" alone", "100 single sends a second, each at its time, a webhook each", aloneSends, w.paced(aloneRate, aloneSends))
}

// growthDisk measures what is left on the disk where nothing else was.
func (b *bench) growthDisk(ctx context.Context, s scenario) error {
	return b.inWorld(ctx, setup{endpoint: true}, func(w *world) error {
		return b.record(s.name+" disk", "what single sends with a webhook leave on the disk", growthSends, 1, func() (measurement, error) {
			return w.left(ctx, growthSends)
		})
	})
}

// growthNetwork measures what goes over the network. The servers of bench have PostgreSQL
// behind a socket: a relay has its part go over the loopback as well. What that costs is
// not looked at.
func (b *bench) growthNetwork(ctx context.Context, s scenario) error {
	return b.inWorld(ctx, setup{endpoint: true, fleet: &fleets[0], relayed: true}, func(w *world) error {
		if err := b.load(ctx, w, s.name+" network", "100 single sends a second, through a relay", aloneSends, w.paced(aloneRate, aloneSends)); err != nil {
			return err
		}
		return b.load(ctx, w, s.name+" network, bulk", "bulk of 500, through a relay", relayBulk, w.bulk(relayBulk))
	})
}

// spread is singles, for two carriers in turn where there are two.
func (w *world) spread(n int) work {
	if w.twin == nil {
		return w.singles(n)
	}
	return func(ctx context.Context) (measurement, error) {
		first := w.take(n)
		return w.drive(ctx, 64, n, n, func(c *client, i int) error {
			c.body = appendSingle(c.body[:0], []string{here, twinPrefix}[i%2], first+i)
			return c.send("/v1/sms", w.tokens[i%len(w.tokens)])
		})
	}
}

// loopback is how many octets have gone over the loopback: each is sent and received once.
func loopback() (float64, error) {
	self, err := procfs.Self()
	if err != nil {
		return 0, fmt.Errorf("looking for our own process: %w", err)
	}
	devices, err := self.NetDev()
	if err != nil {
		return 0, fmt.Errorf("reading what went over the network: %w", err)
	}
	return float64(devices["lo"].RxBytes), nil
}

// left measures what a row of each table takes that has one for every message, with its
// indexes, after n single sends. They are vacuumed bit by bit, as a table is that grows:
// what versions of rows leave behind that are gone is used again.
func (w *world) left(ctx context.Context, n int) (m measurement, err error) {
	const rounds = 8
	for range rounds {
		if _, err := w.singles(n / rounds)(ctx); err != nil {
			return m, err
		}
		if err := w.calm(ctx); err != nil {
			return m, err
		}
		if err := w.tidy(ctx); err != nil {
			return m, err
		}
	}
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return m, fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT relname, pg_total_relation_size(relid) / n_live_tup::float8
		FROM pg_stat_user_tables WHERE n_live_tup >= $1 ORDER BY 2 DESC, 1`, n)
	if err != nil {
		return m, fmt.Errorf("asking how large the tables are: %w", err)
	}
	var name string
	var octets float64
	if _, err := pgx.ForEachRow(rows, []any{&name, &octets}, func() error {
		m.add("disk, "+name, "octets/row", octets)
		return nil
	}); err != nil {
		return m, fmt.Errorf("asking how large the tables are: %w", err)
	}
	return m, nil
}
