package housekeeping

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/dispatcher/core"
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

// RunGauges sets the gauges of backlogs, purges and scheduled messages until ctx ends.
func (d *Housekeeping) RunGauges(ctx context.Context) {
	var scheduled time.Time // time of the next count
	shown := map[string]bool{}
	for {
		if backlogs, err := d.Store.Outbox.Backlogs(ctx); err == nil {
			for _, c := range d.Running() {
				confirm := c.Config().Confirm & 1
				d.Metrics.Info.WithLabelValues(c.Name, core.ConfirmNames[confirm]).Set(1)
				d.Metrics.Info.DeleteLabelValues(c.Name, core.ConfirmNames[1-confirm]) // from before a reload
				for _, lane := range core.LaneNames {
					d.Metrics.Due.WithLabelValues(c.Name, lane).Set(0)
					d.Metrics.Depth.WithLabelValues(c.Name, lane).Set(0)
					d.Metrics.Oldest.WithLabelValues(c.Name, lane).Set(0)
				}
			}
			for _, b := range backlogs {
				lane := core.LaneNames[b.Lane&1]
				d.Metrics.Depth.WithLabelValues(b.Carrier, lane).Set(float64(b.Messages))
				d.Metrics.Due.WithLabelValues(b.Carrier, lane).Set(b.Due.Seconds())
				d.Metrics.Oldest.WithLabelValues(b.Carrier, lane).Set(max(postgres.Now().Sub(b.Oldest).Seconds(), 0))
			}
			shown = d.forgetGone(shown, backlogs)
		}
		d.gaugeRetired(ctx)
		d.GaugePurges(ctx)
		if start := time.Now(); !start.Before(scheduled) {
			d.gaugeScheduled(ctx)
			scheduled = start.Add(max(countEvery, core.Rest(countRest, time.Since(start))))
		}
		if core.Sleep(ctx, gaugeInterval) != nil {
			return
		}
	}
}

// gaugeScheduled counts the scheduled messages not due yet. It reads all of them.
func (d *Housekeeping) gaugeScheduled(ctx context.Context) {
	if lanes, err := d.Store.Outbox.Scheduled(ctx); err == nil {
		for lane, n := range lanes {
			d.Metrics.Scheduled.WithLabelValues(core.LaneNames[lane]).Set(float64(n))
		}
	}
}

// gaugeRetired says which configured carriers are retired.
func (d *Housekeeping) gaugeRetired(ctx context.Context) {
	list, err := rerouting.Retirements(ctx, d.Pool)
	if err != nil {
		return
	}
	d.Metrics.Retired.Reset() // carriers that have left the configuration
	for _, c := range d.Running() {
		now := 0.0
		if slices.ContainsFunc(list, func(r rerouting.Retired) bool { return r.Carrier == c.Name }) {
			now = 1
		}
		d.Metrics.Retired.WithLabelValues(c.Name).Set(now)
	}
}

// forgetGone removes the gauges of shown carriers that are no longer configured and have no backlog, and returns the
// carriers that are shown now.
func (d *Housekeeping) forgetGone(shown map[string]bool, backlogs []outbox.Backlog) map[string]bool {
	now := map[string]bool{}
	for _, c := range d.Running() {
		now[c.Name] = true
	}
	configured := maps.Clone(now)
	for _, b := range backlogs {
		now[b.Carrier] = true
	}
	for name := range shown {
		of := prometheus.Labels{"carrier": name}
		if !configured[name] {
			d.Metrics.Info.DeletePartialMatch(of)
		}
		if now[name] {
			continue
		}
		for _, gauge := range []*prometheus.GaugeVec{d.Metrics.Due, d.Metrics.Depth, d.Metrics.Oldest} {
			gauge.DeletePartialMatch(of)
		}
	}
	return now
}
