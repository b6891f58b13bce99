package recovery

import (
	"context"
	"slices"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/messages/rerouting"
)

// Failover moves the messages of a carrier with no link serving for FailoverAfter to its
// first failover carrier that serves now and where its sender works. A throttled link is
// not down.
func (d *Recovery) Failover(ctx context.Context) error {
	idle, serves := map[string]time.Duration{}, map[string]bool{}
	var name string
	var seconds float64
	var now bool
	if err := postgres.Each(ctx, d.Pool, "looking for the carriers that serve", []any{&name, &seconds, &now},
		func() error {
			idle[name], serves[name] = time.Duration(seconds*float64(time.Second)), now
			return nil
		}, `SELECT carrier, extract(epoch FROM min(`+core.SinceServed+`))::float8, bool_or(`+core.Serving+
			`) FROM links GROUP BY carrier`); err != nil {
		return err
	}
	up := d.Leases.BindingFor()
	for _, c := range d.Running() {
		if _, retired := d.retired[c.Name]; retired {
			continue
		}
		config := c.Config()
		away, known := idle[c.Name]
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
			to := d.To(other)
			to.Unless = before
			n, err := d.HandOver(ctx, c, to)
			if err != nil {
				return err
			}
			d.Metrics.Rerouted.WithLabelValues(c.Name).Add(float64(n))
			if n > 0 && !slices.Contains(c.StandIns, other) {
				c.StandIns = append(c.StandIns, other)
				d.Log.Warn("carrier is down; failing over to another", "event", "carrier_failed_over", "carrier", c.Name, "by",
					other, "messages", n)
			}
			if all, err := d.Store.Rerouting.TakesAll(ctx, to); all || err != nil {
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
	from core.LaneKey
	to   string
}

// HandOver gives the failover carrier what it can carry soon: single sends first, then
// batches, bounded so that its own messages do not wait long behind them. Of a lane it reads
// the next 20,000 rows: in a long one, what stays with its carrier costs no more each round.
func (d *Recovery) HandOver(ctx context.Context, c *core.Carrier, to rerouting.To) (n int64, err error) {
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		limit := handOverMost
		if tps := d.tpsOf(to.Carrier); tps > 0 {
			limit = min(limit, max(int(tps*handOverAhead.Seconds()), 1))
			waiting, err := d.Store.Rerouting.Ready(ctx, to.Carrier, int(lane), limit)
			if err != nil {
				return n, err
			}
			limit -= waiting
		}
		if limit <= 0 {
			continue
		}
		way := handing{core.LaneKey{Carrier: c.Name, Lane: lane}, to.Carrier}
		moved, next, err := d.Store.Rerouting.Reroute(ctx, c.Name, to, int(lane), d.handed[way], limit,
			c.Config().OnAmbiguous)
		d.handed[way] = next
		if n += moved; err != nil {
			return n, err
		}
	}
	return n, nil
}

// tpsOf returns the total segments per second of a carrier's links; 0: unlimited,
// or not configured here.
func (d *Recovery) tpsOf(name string) (tps float64) {
	for _, c := range d.Running() {
		if c.Name != name {
			continue
		}
		for _, l := range c.Config().Links {
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

// TakeBack returns to a carrier that serves again the messages that no failover carrier has tried.
func (d *Recovery) TakeBack(ctx context.Context) error {
	for _, c := range d.Running() {
		if len(c.Config().Failover) == 0 {
			continue
		}
		serves, err := core.Serves(ctx, d.Pool, c.Name, 0)
		if err != nil {
			return err
		}
		if !serves {
			continue
		}
		n, err := d.Store.Rerouting.Return(ctx, d.To(c.Name), handOverMost)
		if err != nil {
			return err
		}
		if c.StandIns != nil || n > 0 {
			c.StandIns = nil
			d.Log.Info("carrier is back; messages that no other carrier has tried return to it", "event", "carrier_back",
				"carrier", c.Name, "messages", n)
		}
	}
	return nil
}
