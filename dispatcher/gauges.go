package dispatcher

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
	"intumwa/messages/outbox"
	"intumwa/messages/rerouting"
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
	shown := map[string]bool{}
	for {
		if backlogs, err := d.store.outbox.Backlogs(ctx); err == nil {
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
			shown = d.forgetGone(shown, backlogs)
		}
		d.gaugeRetired(ctx)
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
	if lanes, err := d.store.outbox.Scheduled(ctx); err == nil {
		for lane, n := range lanes {
			d.metrics.scheduled.WithLabelValues(laneNames[lane]).Set(float64(n))
		}
	}
}

// gaugeRetired says which configured carriers are retired.
func (d *housekeeping) gaugeRetired(ctx context.Context) {
	list, err := rerouting.Retirements(ctx, d.pool)
	if err != nil {
		return
	}
	d.metrics.retired.Reset() // carriers that have left the configuration
	for _, c := range d.running() {
		now := 0.0
		if slices.ContainsFunc(list, func(r rerouting.Retired) bool { return r.Carrier == c.name }) {
			now = 1
		}
		d.metrics.retired.WithLabelValues(c.name).Set(now)
	}
}

// forgetGone removes the gauges of shown carriers that are no longer configured and have no backlog, and returns the
// carriers that are shown now.
func (d *housekeeping) forgetGone(shown map[string]bool, backlogs []outbox.Backlog) map[string]bool {
	now := map[string]bool{}
	for _, c := range d.running() {
		now[c.name] = true
	}
	configured := maps.Clone(now)
	for _, b := range backlogs {
		now[b.Carrier] = true
	}
	for name := range shown {
		of := prometheus.Labels{"carrier": name}
		if !configured[name] {
			d.metrics.info.DeletePartialMatch(of)
		}
		if now[name] {
			continue
		}
		for _, gauge := range []*prometheus.GaugeVec{d.metrics.due, d.metrics.depth, d.metrics.oldest} {
			gauge.DeletePartialMatch(of)
		}
	}
	return now
}
