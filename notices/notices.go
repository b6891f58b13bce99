// Package notices hears at once what another process changed, where rows are
// kept in memory for a moment: a token revoked, a company or a sender approved,
// an endpoint switched, a link paused.
//
// Triggers on the tables tell (migration 00031), so it does not matter by whose
// hand the change came: a page, a command, the API, or an operator at psql. A
// notice goes out with the transaction of its change. It carries a subject and
// a key, never a value: who hears it forgets what it had and reads again.
//
// [Listener] has a connection of its own, outside the pool. When it is lost, or
// was silently cut, it connects again and tells every ear that anything may
// have changed meanwhile. While there is none, what the rooms keep in memory
// ends by its age as it would without this package.
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
)

// Subjects of notices, and what their keys are.
const (
	Account  = "account"  // user id: tokens, company, test number
	Company  = "company"  // company id: senders
	Endpoint = "endpoint" // company id: webhook endpoint
	Link     = "link"     // name: paused or not
)

// channel is the one that the triggers write to.
const channel = "intumwa"

// Everything is the key of a notice that anything of a subject may have changed.
const Everything = ""

const (
	pulse       = 2 * time.Second       // silence after which the connection is tried
	patience    = 2 * time.Second       // of connecting, and of an answer to that
	firstPause  = 50 * time.Millisecond // before connecting again, doubling
	longestRest = 2 * time.Second       // at most
)

// Options of New. A zero field means its default.
type Options struct {
	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: not registered
}

// Listener hears notices for the ears of one process.
type Listener struct {
	config *pgx.ConnConfig
	log    *slog.Logger
	ears   map[string][]func(key string)

	up     prometheus.Gauge
	starts prometheus.Counter
	heard  *prometheus.CounterVec
}

// New returns a listener on the database that pool has connections to. It does
// no I/O; Run does.
func New(pool *pgxpool.Pool, opts Options) *Listener {
	l := &Listener{
		config: pool.Config().ConnConfig,
		log:    opts.Log,
		ears:   make(map[string][]func(string)),
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "intumwa_notices_up",
			Help: "1 while changes made elsewhere are heard at once, 0 while only their age ends what is kept in memory.",
		}),
		starts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "intumwa_notices_connections_total",
			Help: "Connections made to hear changes; each dropped what was kept in memory.",
		}),
		heard: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intumwa_notices_total",
			Help: "Changes heard, by subject.",
		}, []string{"subject"}),
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	for _, subject := range []string{Account, Company, Endpoint, Link} {
		l.heard.WithLabelValues(subject)
	}
	if opts.Metrics != nil {
		opts.Metrics.MustRegister(l.up, l.starts, l.heard)
	}
	return l
}

// On has ear called with the key of every notice of a subject, and with
// Everything when some may have been missed. Ears are called one at a time and
// must return at once. On is for before Run.
func (l *Listener) On(subject string, ear func(key string)) {
	l.ears[subject] = append(l.ears[subject], ear)
}

// Run listens until ctx ends, and then returns nil.
func (l *Listener) Run(ctx context.Context) error {
	defer l.up.Set(0)
	pause, quiet := firstPause, false
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
			l.log.Warn("change notices lost: changes by other processes take effect late until the database answers", "error", err)
			quiet = true
		}
		if time.Since(began) > longestRest {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longestRest)
	}
}

// listen hears on one connection until it breaks. listened tells whether it
// ever began to.
func (l *Listener) listen(ctx context.Context) (listened bool, err error) {
	conn, err := l.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience/2)
		defer cancel()
		_ = conn.Close(ending) // it is broken, or of no more use
	}()
	// What changed before the LISTEN nobody told us; what changes from now on
	// waits on the connection.
	for _, subject := range []string{Account, Company, Endpoint, Link} {
		l.tell(subject, Everything)
	}
	l.up.Set(1)
	l.starts.Inc()
	l.log.Info("change notices received: changes by other processes take effect at once")
	for {
		notice, err := wait(ctx, conn)
		if err != nil {
			return true, err
		}
		if notice == "" {
			continue
		}
		subject, key, _ := strings.Cut(notice, " ")
		if _, known := l.ears[subject]; !known {
			continue // of a newer release, or nobody here keeps such
		}
		l.heard.WithLabelValues(subject).Inc()
		l.tell(subject, key)
	}
}

func (l *Listener) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, l.config.Copy())
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if _, err := conn.Exec(ctx, `LISTEN `+channel); err != nil {
		_ = conn.Close(ctx) // the first error says more
		return nil, fmt.Errorf("listening: %w", err)
	}
	return conn, nil
}

// wait answers the next notice's text, or "" after a pulse of silence in which
// the server was heard to be there.
func wait(ctx context.Context, conn *pgx.Conn) (string, error) {
	quiet, cancel := context.WithTimeout(ctx, pulse)
	defer cancel()
	n, err := conn.WaitForNotification(quiet)
	switch {
	case err == nil:
		return n.Payload, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("ending: %w", ctx.Err())
	case !errors.Is(err, context.DeadlineExceeded) && quiet.Err() == nil:
		return "", fmt.Errorf("listening: %w", err)
	}
	answer, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := conn.Ping(answer); err != nil { // what comes before its answer is kept for the next call
		return "", fmt.Errorf("the server is silent: %w", err)
	}
	return "", nil
}

func (l *Listener) tell(subject, key string) {
	for _, ear := range l.ears[subject] {
		ear(key)
	}
}
