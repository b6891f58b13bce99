package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"intumwa/internal/postgres"
)

// ops is the operators' listener: /metrics, /healthz, /readyz, /debug/pprof.
// It is not for the public.
type ops struct {
	*http.ServeMux
	serving atomic.Bool // the listeners are up and the process is not ending
}

// registry takes metrics and shows them.
type registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

func newOps(pool *pgxpool.Pool, registry registry, log *slog.Logger) *ops {
	o := &ops{ServeMux: http.NewServeMux()}
	o.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError)}))
	// What the process spends its time and memory on.
	o.HandleFunc("GET /debug/pprof/", pprof.Index)
	o.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	o.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	// The process lives: whoever restarts it has nothing to gain from the
	// database's state.
	o.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { state(w, http.StatusOK, "ok", "") })
	// Migrations are in, Postgres answers, the listeners are up
	// (rule choices 7.8). A link that cannot bind is no reason to send customers elsewhere.
	o.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if !o.serving.Load() {
			state(w, http.StatusServiceUnavailable, "unready", "starting or ending")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		// A schema of the next release is one that this one works on (CONTRIBUTING.md): an upgrade migrates first and
		// then replaces the processes, which have to go on meanwhile.
		if err := postgres.Current(ctx, pool); err != nil && !errors.Is(err, postgres.ErrSchemaNewer) {
			state(w, http.StatusServiceUnavailable, "unready", err.Error())
			return
		}
		state(w, http.StatusOK, "ready", "")
	})
	return o
}

func state(w http.ResponseWriter, code int, status, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{status, reason}) // a probe that hung up needs no answer
}

func buildInfo() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_build_info", Help: "1, labelled with the version that runs.",
		ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	return info
}

// poolGauges shows the connections of a pool in use and in all. The collectors that libraries have for pgxpool know other
// names than the dashboards and alerts.
func poolGauges(pool *pgxpool.Pool, name string) []prometheus.Collector {
	labels := prometheus.Labels{"pool": name}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "intumwa_db_pool_in_use", Help: "Database connections in use.", ConstLabels: labels},
			func() float64 { return float64(pool.Stat().AcquiredConns()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "intumwa_db_pool_max", Help: "Most database connections.", ConstLabels: labels},
			func() float64 { return float64(pool.Stat().MaxConns()) }),
	}
}
