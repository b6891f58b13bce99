package dispatcher

import (
	"context"
	"slices"
	"time"

	"intumwa/internal/postgres"
	"intumwa/messages/rerouting"
	"intumwa/queue"
)

// failover moves the messages of a carrier with no link serving for FailoverAfter to its
// first failover carrier that serves now and where its sender works. A throttled link is
// not down.
func (d *recovery) failover(ctx context.Context) error {
	idle, serves := map[string]time.Duration{}, map[string]bool{}
	var name string
	var seconds float64
	var now bool
	if err := postgres.Each(ctx, d.pool, "looking for the carriers that serve", []any{&name, &seconds, &now}, func() error {
		idle[name], serves[name] = time.Duration(seconds*float64(time.Second)), now
		return nil
	}, `SELECT carrier, extract(epoch FROM min(`+sinceServed+`))::float8, bool_or(`+serving+`) FROM links GROUP BY carrier`); err != nil {
		return err
	}
	up := d.leases.bindingFor()
	for _, c := range d.running() {
		if _, retired := d.retired[c.name]; retired {
			continue
		}
		config := c.config()
		away, known := idle[c.name]
		if !known {
			away = up // it has no links left
		}
		// A process that has just started, or come back, has had no time to bind.
		if min(away, up) < config.FailoverAfter {
			continue
		}
		var before []rerouting.To
		for _, other := range config.Failover {
			if !serves[other] {
				continue
			}
			to := d.to(other)
			to.Unless = before
			n, err := d.handOver(ctx, c, to)
			if err != nil {
				return err
			}
			d.metrics.rerouted.WithLabelValues(c.name).Add(float64(n))
			if n > 0 && !slices.Contains(c.standIns, other) {
				c.standIns = append(c.standIns, other)
				d.log.Warn("carrier is down; failing over to another", "event", "carrier_failed_over", "carrier", c.name, "by", other, "messages", n)
			}
			if all, err := d.store.rerouting.TakesAll(ctx, to); all || err != nil {
				if err != nil {
					return err
				}
				break
			}
			before = append(before, to)
		}
	}
	return nil
}

const (
	handOverMost = 5000 // messages per lane and round
	// handOverAhead bounds how much is handed over at once, in time of the failover carrier.
	// The rest stays with its carrier, for its links when they serve again.
	handOverAhead = 30 * time.Second
)

// handing is a way from a carrier's lane to a failover carrier.
type handing struct {
	from laneKey
	to   string
}

// handOver gives the failover carrier what it can carry soon: single sends first, then
// batches, bounded so that its own messages do not wait long behind them. Of a lane it reads
// the next 20,000 rows: in a long one, what stays with its carrier costs no more each round.
func (d *recovery) handOver(ctx context.Context, c *carrier, to rerouting.To) (n int64, err error) {
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		limit := handOverMost
		if tps := d.tpsOf(to.Carrier); tps > 0 {
			limit = min(limit, max(int(tps*handOverAhead.Seconds()), 1))
			waiting, err := d.store.rerouting.Ready(ctx, to.Carrier, int(lane), limit)
			if err != nil {
				return n, err
			}
			limit -= waiting
		}
		if limit <= 0 {
			continue
		}
		way := handing{laneKey{c.name, lane}, to.Carrier}
		moved, next, err := d.store.rerouting.Reroute(ctx, c.name, to, int(lane), d.handed[way], limit, c.config().OnAmbiguous)
		d.handed[way] = next
		if n += moved; err != nil {
			return n, err
		}
	}
	return n, nil
}

// tpsOf returns the total segments per second of a carrier's links; 0: unlimited,
// or not configured here.
func (d *recovery) tpsOf(name string) (tps float64) {
	for _, c := range d.running() {
		if c.name != name {
			continue
		}
		for _, l := range c.config().Links {
			if !l.Mode.Submits() {
				continue
			}
			if l.TPS == 0 {
				return 0
			}
			tps += l.TPS
		}
	}
	return tps
}

// takeBack returns to a carrier that serves again the messages that no failover carrier has tried.
func (d *recovery) takeBack(ctx context.Context) error {
	for _, c := range d.running() {
		if len(c.config().Failover) == 0 {
			continue
		}
		serves, err := serves(ctx, d.pool, c.name, 0)
		if err != nil {
			return err
		}
		if !serves {
			continue
		}
		n, err := d.store.rerouting.Return(ctx, d.to(c.name), handOverMost)
		if err != nil {
			return err
		}
		if c.standIns != nil || n > 0 {
			c.standIns = nil
			d.log.Info("carrier is back; messages that no other carrier has tried return to it", "event", "carrier_back", "carrier", c.name, "messages", n)
		}
	}
	return nil
}
