package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
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
	"intumwa/smppserver"
)

// ops is the operators' listener: /metrics, /healthz, /readyz, /debug/pprof. It is not
// public.
type ops struct {
	*http.ServeMux
	serving atomic.Bool // the listeners are up and shutdown has not begun
	standby bool        // commits must be on a standby; readyz reports when they are not
}

type registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// newOps makes the handler. commits returns nil while PostgreSQL commits, else the reason.
func newOps(pool *pgxpool.Pool, commits func() error, registry registry, log *slog.Logger) *ops {
	o := &ops{ServeMux: http.NewServeMux()}
	o.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry,
		ErrorLog: slog.NewLogLogger(log.With("event", "metrics_failed").Handler(), slog.LevelError)}))
	// CPU and memory profiles.
	o.HandleFunc("GET /debug/pprof/", pprof.Index)
	o.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	o.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	// The process is alive. A restart would not mend the database, so its state does not
	// matter here.
	o.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { state(w, http.StatusOK, "ok", "") })
	// Migrations applied, PostgreSQL commits, the listeners are up (rule choices 7.8). A
	// link that cannot bind does not matter: customers would find no better process.
	o.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if !o.serving.Load() {
			state(w, http.StatusServiceUnavailable, "unready", "starting or ending")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		// A newer schema is fine (CONTRIBUTING.md): an upgrade migrates first, then replaces the running processes.
		if err := postgres.Current(ctx, pool); err != nil && !errors.Is(err, postgres.ErrSchemaNewer) {
			state(w, http.StatusServiceUnavailable, "unready", err.Error())
			return
		}
		if err := commits(); err != nil {
			state(w, http.StatusServiceUnavailable, "unready", "PostgreSQL does not commit: "+err.Error())
			return
		}
		// Every process has the same problem, so this one stays ready. The body and an
		// alert report it.
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

// readOnlyBy refuses what only operators may read to clients outside their networks, if there are any, and this
// machine.
func readOnlyBy(readers []netip.Prefix, next http.Handler) http.Handler {
	if len(readers) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && !mayRead(readers, r) {
			state(w, http.StatusForbidden, "refused", "your address is not in ops.networks")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func mayRead(readers []netip.Prefix, r *http.Request) bool {
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := client.Addr().Unmap().WithZone("")
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok &&
		ip == local.AddrPort().Addr().Unmap().WithZone("") || ip.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(readers, func(p netip.Prefix) bool { return p.Contains(ip) })
}

func state(w http.ResponseWriter, code int, status, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{status, reason}) // the probe may have hung up
}

func buildInfo() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_build_info", Help: "1, with the version.",
		ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	return info
}

// poolGauges are a pool's connections, in use and in total. Existing collectors for pgxpool use other metric names than
// our dashboards and alerts.
func poolGauges(pool *pgxpool.Pool, name string) []prometheus.Collector {
	labels := prometheus.Labels{"pool": name}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "intumwa_db_pool_in_use", Help: "Database connections in use.",
			ConstLabels: labels},
			func() float64 { return float64(pool.Stat().AcquiredConns()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "intumwa_db_pool_max", Help: "Limit on database connections.",
			ConstLabels: labels},
			func() float64 { return float64(pool.Stat().MaxConns()) }),
	}
}

// Bounds of a trace, in seconds.
const (
	traceDefault = 60
	traceMost    = 3600
)

// traceLink is GET /debug/links/{name}/trace?seconds=N: the PDUs of a link of this
// process for N seconds as JSON lines, redacted (smpp.TracedPDU). 404: no such link. 409:
// another process holds it.
func traceLink(trace func(ctx context.Context, name string, show func(smpp.TracedPDU) error) error,
	log *slog.Logger) http.HandlerFunc {
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
		_ = control.SetWriteDeadline(time.Now().Add(span + 10*time.Second)) // overrides the listener's timeout
		ctx, cancel := context.WithTimeout(r.Context(), span)
		defer cancel()
		link, shown := r.PathValue("name"), 0
		log.Info("link is traced", "event", "link_traced", "link", link, "seconds", seconds)
		w.Header().Set("Content-Type", "application/x-ndjson")
		lines := json.NewEncoder(plainJSON{w})
		lines.SetEscapeHTML(false)
		err := trace(ctx, link, func(pdu smpp.TracedPDU) error {
			shown++
			if err := lines.Encode(pdu); err != nil {
				return err
			}
			return control.Flush()
		})
		switch {
		case shown > 0 || err == nil: // the client has gone, or the time is up
		case errors.Is(err, dispatcher.ErrNoLink), errors.Is(err, smppserver.ErrNotBound):
			state(w, http.StatusNotFound, "refused", err.Error())
		case errors.Is(err, dispatcher.ErrNotHeld):
			state(w, http.StatusConflict, "refused", err.Error())
		default:
			state(w, http.StatusServiceUnavailable, "refused", err.Error())
		}
	}
}

const (
	ledgerInterval = time.Hour
	ledgerFirst    = 10 * time.Second // after the start, which is busy
)

// ledgerCheck proves the ledger every hour: each balance is the sum of its ledger,
// without a gap. It reads the whole ledger.
type ledgerCheck struct {
	ledger *billing.Ledger
	log    *slog.Logger

	mismatches, checked prometheus.Gauge
}

func newLedgerCheck(ledger *billing.Ledger, log *slog.Logger, reg prometheus.Registerer) *ledgerCheck {
	c := &ledgerCheck{ledger: ledger, log: log,
		mismatches: prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_ledger_mismatches",
			Help: "Companies whose balance is not the sum of their ledger."}),
		checked: prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_ledger_checked_timestamp_seconds",
			Help: "When the ledger was last checked, or when the process started."}),
	}
	c.checked.SetToCurrentTime()
	reg.MustRegister(c.mismatches, c.checked)
	return c
}

// Run checks until ctx ends.
func (c *ledgerCheck) Run(ctx context.Context) error {
	for wait := ledgerFirst; ; wait = ledgerInterval {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		companies, mismatches, err := c.ledger.Audit(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			c.log.Error("ledger check failed", "event", "ledger_check_failed", "error", err)
			continue
		case mismatches > 0:
			c.log.Error("ledger mismatch found: run intumwa admin audit", "event", "ledger_mismatch_found", "companies",
				companies, "mismatches", mismatches)
		}
		c.mismatches.Set(float64(mismatches))
		c.checked.SetToCurrentTime()
	}
}
