package main

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/dispatcher"
	"intumwa/dispatcher/setup"
	"intumwa/intake"
	"intumwa/sms"
)

// reloader applies a changed configuration to a running process: the carriers, their
// links and prefixes. All other keys take effect at the next start.
type reloader struct {
	hangups    <-chan os.Signal // registered by serve
	program    *program
	roles      []string
	log        *slog.Logger
	inForce    *configs.Config
	dispatcher *dispatcher.Dispatcher // nil without that role
	intake     *intake.Intake
	plan       *sms.Plan

	ok, readAt prometheus.Gauge
}

// measured registers the metric of refused reloads.
func (r *reloader) measured(reg prometheus.Registerer) *reloader {
	r.ok = prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_config_reload_ok",
		Help: "0 if the last reload was refused, else 1."})
	r.readAt = prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_config_read_timestamp_seconds",
		Help: "When the current configuration was read."})
	r.ok.Set(1)
	r.readAt.SetToCurrentTime()
	reg.MustRegister(r.ok, r.readAt)
	return r
}

// Run reloads at every SIGHUP until ctx ends.
func (r *reloader) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.hangups:
			r.reload()
		}
	}
}

// reload reads the configuration again. If it has a mistake, reload logs every mistake
// and keeps the running configuration.
func (r *reloader) reload() {
	refuse := func(err error) {
		r.ok.Set(0)
		r.log.Error("configuration reload refused; the previous configuration stays in force", "event", "reload_refused",
			"error", err)
	}
	c, err := r.program.checkedConfig(r.roles...)
	if err != nil {
		refuse(err)
		return
	}
	routes, err := routesOf(c)
	if err != nil {
		refuse(err)
		return
	}
	var carriers []setup.Carrier
	if r.dispatcher != nil { // without that role the links' passwords may be absent
		carriers = dispatcherOptions(c, r.log, nil).Carriers
		if err := r.dispatcher.Check(carriers); err != nil {
			refuse(err)
			return
		}
	}
	// Routes first: messages to a new carrier wait a moment for its lanes, and a removed
	// carrier gets no more.
	r.plan.Replace(planOf(c))
	r.intake.SetRoutes(routes)
	if r.dispatcher != nil {
		if err := r.dispatcher.Reload(carriers); err != nil { // Check has accepted it
			refuse(err)
			return
		}
	}
	changed, waiting := r.changes(c)
	r.log.Info("configuration reloaded", "event", "configuration_reloaded", "changed", changed)
	if len(waiting) > 0 {
		r.log.Warn("configuration changes take effect at the next start", "event", "configuration_waits", "keys", waiting)
	}
	r.inForce = c
	r.ok.Set(1)
	r.readAt.SetToCurrentTime()
}

// changes lists the key paths with other values: those in force now, and those that need
// a restart.
func (r *reloader) changes(c *configs.Config) (now, later []string) {
	for _, key := range r.inForce.Changed(c) {
		if strings.HasPrefix(key, "carriers[") {
			now = append(now, key)
		} else {
			later = append(later, key)
		}
	}
	return now, later
}
