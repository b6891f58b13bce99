package webhooks

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
	"intumwa/internal/vault"
	"intumwa/sms"
)

// Options of New. A zero field means its default.
type Options struct {
	// Timeout of one call, from the first byte sent to the status; 10 s. rule choices 8.2
	Timeout time.Duration
	// RetryDelays are the pauses between a failure and the next attempt; there is one attempt more than delays. 10 s,
	// 30 s, 60 s, 5 min, 15 min. rule api 6
	RetryDelays []time.Duration
	// AllowPrivate permits plain http, any port and addresses that are not public.
	AllowPrivate bool
	// SecretKey encrypts signing secrets at rest; nil stores them in plain text.
	SecretKey *[32]byte

	// Name returns a message's ULID for the log, or "" if unknown. nil: the log has only the message's id.
	Name func(ctx context.Context, messageID int64) string

	// InFlight limits the concurrent calls of this process; 1024. Slow endpoints get at most half of them, and one
	// endpoint an eighth.
	InFlight int

	// Lookups is the pool for customers' lists of deliveries, so that they take no connection from the messages; nil:
	// the pool of New.
	Lookups *pgxpool.Pool

	// Retention is how long deliveries and their attempts are kept; 30 days.
	Retention time.Duration
	// Idle is the longest pause between looks for new and due deliveries; 250 ms.
	Idle time.Duration
	// Drain is how long calls in flight may take at shutdown; 5 s.
	Drain time.Duration

	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: not registered

	resolver *net.Resolver // for endpoints' names; nil: the system's
}

func (o Options) withDefaults() Options {
	set(&o.Timeout, 10*time.Second)
	if o.RetryDelays == nil {
		o.RetryDelays = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute}
	}
	set(&o.InFlight, 1024)
	set(&o.Retention, 30*24*time.Hour)
	set(&o.Idle, 250*time.Millisecond)
	set(&o.Drain, 5*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// mostCalls and fewCalls are the limits of one endpoint's concurrent calls.
func (o *Options) mostCalls() int { return max(1, min(mostCalls, o.InFlight/8)) }
func (o *Options) fewCalls() int  { return min(fewCalls, o.mostCalls()) }

func set[T ~int | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// In returns a copy that works in the caller's transaction. Call Kick of the original after the commit. Do not call Run
// of the copy.
func (w *Webhooks) In(tx pgx.Tx) *Webhooks {
	return &Webhooks{pool: tx, lookups: tx, opts: w.opts, schedule: w.schedule, guard: w.guard, client: w.client,
		vault: w.vault, log: w.log, metrics: w.metrics, kick: make(chan struct{}, 1)}
}

// Webhooks stores endpoints and delivers events. It is safe for concurrent use.
type Webhooks struct {
	pool     postgres.DB
	lookups  postgres.DB // for lists of deliveries
	opts     Options
	schedule schedule
	guard    guard
	client   *client
	vault    vault.Vault
	log      *slog.Logger
	metrics  *metrics
	kick     chan struct{}
	running  atomic.Pointer[deliverer]
	changed  atomic.Bool // an endpoint changed: waiting deliveries may be due

	testsMu sync.Mutex
	tests   map[sms.CompanyID]bool // those under way
}

// New does no I/O and starts nothing. Run needs a pool with postgres.Options.BatchUpdates, because its updates join
// unnested arrays.
func New(pool *pgxpool.Pool, opts Options) *Webhooks {
	opts = opts.withDefaults()
	w := &Webhooks{
		pool:     pool,
		lookups:  pool,
		opts:     opts,
		schedule: opts.RetryDelays,
		guard:    newGuard(opts.AllowPrivate),
		vault:    vault.New(opts.SecretKey, "company"),
		log:      opts.Log,
		metrics:  newMetrics(opts.Metrics),
		kick:     make(chan struct{}, 1),
		tests:    make(map[sms.CompanyID]bool),
	}
	w.client = newClient(opts, w.guard)
	if opts.Lookups != nil {
		w.lookups = opts.Lookups
	}
	return w
}

// Kick wakes Run after deliveries were committed, so that their first attempts start at once. It never blocks, and does
// nothing while Run is not running.
func (w *Webhooks) Kick() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// EndpointChanged is the callback of a notice. It makes Run release a company's uncalled deliveries and look for
// waiting ones. It never blocks.
func (w *Webhooks) EndpointChanged(company string) {
	if d := w.running.Load(); d != nil {
		d.releaseWaiting(company)
	}
	w.changed.Store(true)
	w.Kick()
}
