package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"intumwa/billing"
	"intumwa/dispatcher"
	"intumwa/internal/postgres"
	"intumwa/smpp"
)

// ops is the operators' listener: /metrics, /healthz, /readyz, /debug/pprof.
// It is not for the public.
type ops struct {
	*http.ServeMux
	serving atomic.Bool // the listeners are up and the process is not ending
	standby bool        // every commit has to be on a standby; say so when it is not
}

// registry takes metrics and shows them.
type registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// newOps makes the listener's handler. commits says why PostgreSQL does not commit, and nil
// while it does.
func newOps(pool *pgxpool.Pool, commits func() error, registry registry, log *slog.Logger) *ops {
	o := &ops{ServeMux: http.NewServeMux()}
	o.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry,
		ErrorLog: slog.NewLogLogger(log.With("event", "metrics_failed").Handler(), slog.LevelError)}))
	// What the process spends its time and memory on.
	o.HandleFunc("GET /debug/pprof/", pprof.Index)
	o.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	o.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	// The process lives: whoever restarts it has nothing to gain from the
	// database's state.
	o.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { state(w, http.StatusOK, "ok", "") })
	// Migrations are in, PostgreSQL answers and commits, the listeners are up
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
		if err := commits(); err != nil {
			state(w, http.StatusServiceUnavailable, "unready", "PostgreSQL does not commit: "+err.Error())
			return
		}
		// Nobody is served better by another process then: it is said, and an alert.
		if o.standby {
			if why, err := postgres.Unsafe(ctx, pool); err == nil && why != "" {
				state(w, http.StatusOK, "ready", "database.require_standby does not hold: "+why)
				return
			}
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
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_build_info", Help: "1, with the version.",
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
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "intumwa_db_pool_max", Help: "Limit on database connections.", ConstLabels: labels},
			func() float64 { return float64(pool.Stat().MaxConns()) }),
	}
}

// Bounds of a trace, in seconds.
const (
	traceDefault = 60
	traceMost    = 3600
)

// traceLink is GET /debug/links/{name}/trace?seconds=N: the PDUs of a link of
// this process for N seconds, one JSON object a line, redacted (smpp.TracedPDU).
// 404: there is no such link; 409: another process holds it.
func traceLink(d *dispatcher.Dispatcher, log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds := traceDefault
		if text := r.FormValue("seconds"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > traceMost {
				state(w, http.StatusBadRequest, "refused", "seconds must be from 1 to "+strconv.Itoa(traceMost))
				return
			}
			seconds = n
		}
		span := time.Duration(seconds) * time.Second
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(span + 10*time.Second)) // else the listener's own holds
		ctx, cancel := context.WithTimeout(r.Context(), span)
		defer cancel()
		link, shown := r.PathValue("name"), 0
		log.Info("link is traced", "event", "link_traced", "link", link, "seconds", seconds)
		w.Header().Set("Content-Type", "application/x-ndjson")
		lines := json.NewEncoder(plainJSON{w})
		lines.SetEscapeHTML(false)
		err := d.Trace(ctx, link, func(pdu smpp.TracedPDU) error {
			shown++
			if err := lines.Encode(pdu); err != nil {
				return err
			}
			return control.Flush()
		})
		switch {
		case shown > 0 || err == nil: // whoever looked has gone, or the time is up
		case errors.Is(err, dispatcher.ErrNoLink):
			state(w, http.StatusNotFound, "refused", err.Error())
		case errors.Is(err, dispatcher.ErrNotHeld):
			state(w, http.StatusConflict, "refused", err.Error())
		default:
			state(w, http.StatusServiceUnavailable, "refused", err.Error())
		}
	}
}

const (
	booksInterval = time.Hour
	booksFirst    = 10 * time.Second // after the start, which has other work
)

// books proves the ledger every hour: balance = sum of the ledger, without a
// gap. It reads the whole ledger, so it does not do it more often.
type books struct {
	ledger *billing.Ledger
	log    *slog.Logger

	mismatches, checked prometheus.Gauge
}

func newBooks(ledger *billing.Ledger, log *slog.Logger, reg prometheus.Registerer) *books {
	b := &books{ledger: ledger, log: log,
		mismatches: prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_ledger_mismatches",
			Help: "Companies whose balance is not the sum of their ledger."}),
		checked: prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_ledger_checked_timestamp_seconds",
			Help: "When the ledger was last checked, or the process started."}),
	}
	b.checked.SetToCurrentTime()
	reg.MustRegister(b.mismatches, b.checked)
	return b
}

// Run checks until ctx ends.
func (b *books) Run(ctx context.Context) error {
	for wait := booksFirst; ; wait = booksInterval {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		companies, mismatches, err := b.ledger.Audit(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			b.log.Error("ledger check failed", "event", "ledger_check_failed", "error", err)
			continue
		case mismatches > 0:
			b.log.Error("ledger mismatch found: run intumwa admin audit", "event", "ledger_mismatch_found", "companies", companies, "mismatches", mismatches)
		}
		b.mismatches.Set(float64(mismatches))
		b.checked.SetToCurrentTime()
	}
}
