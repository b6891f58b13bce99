// Package notices receives changes that other processes make to rows that this process
// caches: a token revoked, a company or a sender approved, an endpoint switched, a link
// paused, a carrier retired.
//
// Triggers on the tables, named …_notice, send the notices, so every change is covered: by a page, a command, the API,
// or psql. A notice is sent when the transaction of its change commits (LISTEN and NOTIFY). It carries a subject and a
// key, never a value: the receiver drops what it has cached and reads again.
//
// [Listener] has a connection of its own, outside the pool. When the connection is
// lost, it connects again and calls every callback with [Everything], because notices
// may have been missed. Without a connection, cached rows expire by their age.
package notices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Subjects of notices, and what their keys are.
const (
	Account  = "account"  // user id: tokens, company, test number
	Company  = "company"  // company id: senders
	Endpoint = "endpoint" // company id: webhook endpoint
	Link     = "link"     // name: paused or not
	SMPP     = "smpp"     // API key's id: its binds are to end
	Carrier  = "carrier"  // name: retired or not
)

// subjects are all of them.
var subjects = [...]string{Account, Company, Endpoint, Link, SMPP, Carrier}

// channel is the one that the triggers write to.
const channel = "intumwa"

// Everything is the key of a notice that any row of a subject may have changed.
const Everything = ""

const (
	pingAfter      = 2 * time.Second       // silence after which the connection is tested
	connectTimeout = 2 * time.Second       // for connecting to one host, and for the response to the test
	minRetryPause  = 50 * time.Millisecond // before connecting again; doubles
	maxRetryPause  = 2 * time.Second       // the longest pause
)

// Options of New. A zero field means its default.
type Options struct {
	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: not registered
}

// Listener receives notices and calls the callbacks of one process.
type Listener struct {
	config    *pgx.ConnConfig
	prefer    func(context.Context, *pgx.ConnConfig) error // orders several hosts; nil: as configured
	log       *slog.Logger
	callbacks map[string][]func(key string)

	up     prometheus.Gauge
	starts prometheus.Counter
	heard  *prometheus.CounterVec
}

// New returns a listener on pool's database. It does no I/O; Run does.
func New(pool *pgxpool.Pool, opts Options) *Listener {
	whole := pool.Config()
	register := promauto.With(opts.Metrics)
	l := &Listener{
		config:    whole.ConnConfig,
		prefer:    whole.BeforeConnect,
		log:       opts.Log,
		callbacks: make(map[string][]func(string)),
		up: register.NewGauge(prometheus.GaugeOpts{
			Name: "intumwa_notices_up",
			Help: "1 while change notices are received, else 0: cached rows expire by age.",
		}),
		starts: register.NewCounter(prometheus.CounterOpts{
			Name: "intumwa_notices_connections_total",
			Help: "Connections for change notices; each clears the caches.",
		}),
		heard: register.NewCounterVec(prometheus.CounterOpts{
			Name: "intumwa_notices_total",
			Help: "Change notices received.",
		}, []string{"subject"}),
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	for _, subject := range subjects {
		l.heard.WithLabelValues(subject)
	}
	return l
}

// On registers a callback for a subject. It is called with the key of each notice, and
// with Everything when notices may have been missed. Callbacks run one at a time and must
// return at once. Call On before Run.
func (l *Listener) On(subject string, callback func(key string)) {
	l.callbacks[subject] = append(l.callbacks[subject], callback)
}

// Run receives notices until ctx ends, and then returns nil.
func (l *Listener) Run(ctx context.Context) error {
	defer l.up.Set(0)
	pause, quiet := minRetryPause, false
	for {
		began, listened, err := time.Now(), false, error(nil)
		listened, err = l.listen(ctx)
		if ctx.Err() != nil {
			return nil
		}
		l.up.Set(0)
		if listened {
			quiet = false
		}
		if !quiet {
			l.log.Warn("change notices lost: changes by other processes take effect late until the database answers", "event",
				"notices_lost", "error", err)
			quiet = true
		}
		if time.Since(began) > maxRetryPause {
			pause = minRetryPause
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, maxRetryPause)
	}
}

// listen receives notices on one connection until it breaks. listened means that LISTEN
// succeeded.
func (l *Listener) listen(ctx context.Context) (listened bool, err error) {
	conn, err := l.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout/2)
		defer cancel()
		_ = conn.Close(ending) // broken, or no longer needed
	}()
	// Changes before the LISTEN may have been missed; later ones wait on the connection.
	for _, subject := range subjects {
		l.notify(subject, Everything)
	}
	l.up.Set(1)
	l.starts.Inc()
	l.log.Info("change notices received: changes by other processes take effect at once", "event", "notices_received")
	for {
		notice, err := nextNotice(ctx, conn)
		if err != nil {
			return true, err
		}
		if notice == "" {
			continue
		}
		subject, key, _ := strings.Cut(notice, " ")
		if _, known := l.callbacks[subject]; !known {
			continue // an unknown subject, from a newer release
		}
		l.heard.WithLabelValues(subject).Inc()
		l.notify(subject, key)
	}
}

func (l *Listener) connect(ctx context.Context) (*pgx.Conn, error) {
	config := l.config.Copy()
	if l.prefer != nil {
		if err := l.prefer(ctx, config); err != nil {
			return nil, fmt.Errorf("choosing the host: %w", err)
		}
	}
	config.ConnectTimeout = connectTimeout
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+len(config.Fallbacks))*connectTimeout)
	defer cancel()
	config.RuntimeParams["application_name"] += " notices" // in pg_stat_activity, where it idles for hours
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if _, err := conn.Exec(ctx, `LISTEN `+channel); err != nil {
		_ = conn.Close(ctx) // the first error is returned
		return nil, fmt.Errorf("listening: %w", err)
	}
	return conn, nil
}

// nextNotice returns the payload of the next notice, or "" after pingAfter without one,
// if the server responds to a ping.
func nextNotice(ctx context.Context, conn *pgx.Conn) (string, error) {
	quiet, cancel := context.WithTimeout(ctx, pingAfter)
	defer cancel()
	n, err := conn.WaitForNotification(quiet)
	switch {
	case err == nil:
		return n.Payload, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("shutting down: %w", ctx.Err())
	case !errors.Is(err, context.DeadlineExceeded) && quiet.Err() == nil:
		return "", fmt.Errorf("listening: %w", err)
	}
	answer, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := conn.Ping(answer); err != nil { // notices before the response stay for the next call
		return "", fmt.Errorf("the server is silent: %w", err)
	}
	return "", nil
}

func (l *Listener) notify(subject, key string) {
	for _, callback := range l.callbacks[subject] {
		callback(key)
	}
}
