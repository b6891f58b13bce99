package dispatcher

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/queue"
)

// sinceServed is for how long a link has carried nothing. Of one that somebody holds it is
// told by two moments of one heartbeat, which both are from before a step of the database's
// clock, or both from after it. One that nobody holds serves nobody, whatever the clock says.
const sinceServed = `CASE WHEN ` + leased + ` THEN updated_at - served_at
	ELSE greatest(now() - served_at, served_at - now()) END`

// failover hands the messages of a carrier none of whose links has served for
// FailoverAfter to the first of its stand-ins that serves. Throttling is not
// down.
func (d *Dispatcher) failover(ctx context.Context) error {
	rows, err := d.pool.Query(ctx, `SELECT carrier, extract(epoch FROM min(`+sinceServed+`))::float8 FROM links GROUP BY carrier`)
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
	up := d.member.bindingFor()
	for _, c := range append(d.removed(), d.running()...) {
		config := c.config()
		away, known := idle[c.name]
		if !known {
			away = up // it has no link any more
		}
		// A process that has just come, or come back, has not had the time to bind.
		if min(away, up) < config.FailoverAfter {
			continue
		}
		for _, other := range config.Failover {
			if away, known := idle[other]; !known || away > d.opts.DeadAfter {
				continue
			}
			n, err := d.handOver(ctx, c, other)
			if err != nil {
				return err
			}
			d.metrics.rerouted.WithLabelValues(c.name).Add(float64(n))
			if n > 0 && c.standIn != other {
				c.standIn = other
				d.log.Warn("carrier is down; failing over to another", "carrier", c.name, "by", other, "messages", n)
			}
			break
		}
	}
	return nil
}

const (
	handOverMost = 5000 // messages a lane and a round
	// handOverAhead is how much of its own time a stand-in is given at once: what
	// is not handed over yet goes back to its carrier's links when they return.
	handOverAhead = 30 * time.Second
)

// handOver gives the stand-in what it can carry soon: single sends first, of
// batches no more than its own customers can bear to wait behind.
func (d *Dispatcher) handOver(ctx context.Context, c *carrier, other string) (n int64, err error) {
	held := c.config().OnAmbiguous == AmbiguousHold
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		limit := handOverMost
		if tps := d.tpsOf(other); tps > 0 {
			limit = min(limit, max(int(tps*handOverAhead.Seconds()), 1))
			waiting, err := d.store.Ready(ctx, other, int(lane), limit)
			if err != nil {
				return n, err
			}
			limit -= waiting
		}
		if limit <= 0 {
			continue
		}
		moved, err := d.store.Reroute(ctx, c.name, other, int(lane), limit, held)
		if n += moved; err != nil {
			return n, err
		}
	}
	return n, nil
}

// tpsOf is how many segments a second a carrier's links carry together; 0: as
// many as they can, or a carrier that is not configured here.
func (d *Dispatcher) tpsOf(name string) (tps float64) {
	for _, c := range d.running() {
		if c.name != name {
			continue
		}
		for _, l := range c.config().Links {
			if l.TPS == 0 {
				return 0
			}
			tps += l.TPS
		}
	}
	return tps
}

// takeBack gives a carrier that serves again what its stand-ins have not tried.
func (d *Dispatcher) takeBack(ctx context.Context) error {
	for _, c := range d.running() {
		config := c.config()
		if len(config.Failover) == 0 {
			continue
		}
		var serves bool
		if err := d.pool.QueryRow(ctx, `SELECT coalesce(min(`+sinceServed+`) < $2::interval, false) FROM links WHERE carrier = $1`,
			c.name, min(2*d.opts.Heartbeat, config.FailoverAfter)).Scan(&serves); err != nil {
			return fmt.Errorf("asking whether %s serves: %w", c.name, err)
		}
		if !serves {
			continue
		}
		n, err := d.store.Return(ctx, c.name, handOverMost)
		if err != nil {
			return err
		}
		if c.standIn != "" || n > 0 {
			c.standIn = ""
			d.log.Info("carrier is back; messages that its stand-ins have not tried return to it", "carrier", c.name, "messages", n)
		}
	}
	return nil
}
