package dispatcher

import (
	"context"
	"time"

	"intumwa/internal/postgres"
)

const (
	// gaugeInterval is the interval at which the gauges are set.
	gaugeInterval = 2 * time.Second
	// After counting the scheduled messages the count rests for countRest times its
	// duration, at least for countEvery.
	countRest, countEvery = 200, 30 * time.Second
)

// runGauges sets the gauges of backlogs, purges and scheduled messages until ctx ends.
func (d *housekeeping) runGauges(ctx context.Context) {
	var scheduled time.Time // time of the next count
	for {
		if backlogs, err := d.store.Backlogs(ctx); err == nil {
			for _, c := range d.running() {
				confirm := c.config().Confirm & 1
				d.metrics.info.WithLabelValues(c.name, confirmNames[confirm]).Set(1)
				d.metrics.info.DeleteLabelValues(c.name, confirmNames[1-confirm]) // from before a reload
				for _, lane := range laneNames {
					d.metrics.due.WithLabelValues(c.name, lane).Set(0)
					d.metrics.depth.WithLabelValues(c.name, lane).Set(0)
					d.metrics.oldest.WithLabelValues(c.name, lane).Set(0)
				}
			}
			for _, b := range backlogs {
				lane := laneNames[b.Lane&1]
				d.metrics.depth.WithLabelValues(b.Carrier, lane).Set(float64(b.Messages))
				d.metrics.due.WithLabelValues(b.Carrier, lane).Set(b.Due.Seconds())
				d.metrics.oldest.WithLabelValues(b.Carrier, lane).Set(max(postgres.Now().Sub(b.Oldest).Seconds(), 0))
			}
		}
		d.gaugePurges(ctx)
		if start := time.Now(); !start.Before(scheduled) {
			d.gaugeScheduled(ctx)
			scheduled = start.Add(max(countEvery, rest(countRest, time.Since(start))))
		}
		if sleep(ctx, gaugeInterval) != nil {
			return
		}
	}
}

// gaugeScheduled counts the scheduled messages not due yet. It reads all of them.
func (d *housekeeping) gaugeScheduled(ctx context.Context) {
	if lanes, err := d.store.Scheduled(ctx); err == nil {
		for lane, n := range lanes {
			d.metrics.scheduled.WithLabelValues(laneNames[lane]).Set(float64(n))
		}
	}
}
