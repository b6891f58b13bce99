package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// failover hands the messages of a carrier none of whose links has served for
// FailoverAfter to the first of its stand-ins that serves. Throttling is not
// down.
func (d *Dispatcher) failover(ctx context.Context) error {
	const most = 5000 // messages a round
	rows, err := d.pool.Query(ctx, `SELECT carrier, extract(epoch FROM now() - max(served_at))::float8 FROM links GROUP BY carrier`)
	if err != nil {
		return fmt.Errorf("asking which carriers serve: %w", err)
	}
	idle := map[string]time.Duration{}
	var name string
	var seconds float64
	if _, err := pgx.ForEachRow(rows, []any{&name, &seconds}, func() error {
		idle[name] = time.Duration(seconds * float64(time.Second))
		return nil
	}); err != nil {
		return fmt.Errorf("asking which carriers serve: %w", err)
	}
	up := time.Since(d.member.start)
	for _, c := range append(d.removed(), d.running()...) {
		config := c.config()
		away, known := idle[c.name]
		if !known {
			away = up // it has no link any more
		}
		// A process that has just come has not had the time to bind.
		if min(away, up) < config.FailoverAfter {
			continue
		}
		for _, other := range config.Failover {
			if away, known := idle[other]; !known || away > d.opts.DeadAfter {
				continue
			}
			n, err := d.store.Reroute(ctx, c.name, other, most)
			if err != nil {
				return err
			}
			if n > 0 {
				d.metrics.rerouted.WithLabelValues(c.name).Add(float64(n))
				d.log.Warn("carrier is down; another takes its messages", "carrier", c.name, "by", other, "messages", n)
			}
			break
		}
	}
	return nil
}

// readdress hands messages that wait for a carrier which is configured nowhere
// any more to the carrier that now takes their numbers.
func (d *Dispatcher) readdress(ctx context.Context) error {
	const most = 5000 // messages a round
	if d.opts.Route == nil {
		return nil
	}
	var known []string
	for _, c := range d.running() {
		known = append(known, c.name)
	}
	stranded, err := d.store.Stranded(ctx, known, d.opts.StrandedAfter, most)
	if err != nil {
		return err
	}
	type way struct{ from, to string }
	moves := map[way][]int64{}
	for _, m := range stranded {
		if to, ok := d.opts.Route(m.Number); ok && slices.Contains(known, to) {
			moves[way{m.Carrier, to}] = append(moves[way{m.Carrier, to}], m.ID)
		}
	}
	for way, ids := range moves {
		n, err := d.store.Readdress(ctx, ids, way.from, way.to)
		if err != nil {
			return err
		}
		d.metrics.rerouted.WithLabelValues(way.from).Add(float64(n))
		d.log.Warn("carrier is configured no more; another takes its messages", "carrier", way.from, "by", way.to, "messages", n)
	}
	return nil
}
