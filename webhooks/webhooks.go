package webhooks

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/vault"
)

// Options of New. A zero field means its default.
type Options struct {
	// Timeout of one call, from the first octet out to the status; 10 s. rule choices 8.2
	Timeout time.Duration
	// RetryDelays are the pauses between a failure and the next attempt, so there
	// is one attempt more than delays; 10 s, 30 s, 60 s, 5 min, 15 min. rule api 6
	RetryDelays []time.Duration
	// AllowPrivate permits plain http, any port and addresses that are not public.
	AllowPrivate bool
	// SecretKey encrypts signing secrets at rest; nil keeps them in plain.
	SecretKey *[32]byte

	// DisableAfter switches an endpoint off at a failure when nothing but failures
	// came for that long; 0: never. DisableOnGone does when it answers 410 Gone.
	DisableAfter  time.Duration
	DisableOnGone bool

	// Name turns a message's id into its ULID for the log; "" when it is not
	// known. nil: the log has the id alone.
	Name func(ctx context.Context, messageID int64) string

	// InFlight bounds the calls under way in this process; 1024. Half of it is for
	// endpoints that answer quickly, a quarter for those not yet known, a quarter
	// for slow ones.
	InFlight int
	// PerEndpoint is how many calls one endpoint gets at a time to begin with and
	// after a failure; 4, and no more than a sixteenth of InFlight. It grows to
	// PerEndpointMax, 32, and no more than an eighth of InFlight, while answers are
	// quick. So no endpoint ever holds more than a quarter of a pool.
	PerEndpoint    int
	PerEndpointMax int

	// Retention is how long deliveries and their attempts are kept; 30 days.
	Retention time.Duration
	// Idle is the longest pause between looks for new and due deliveries; 250 ms.
	Idle time.Duration
	// Drain bounds the calls under way at shutdown; 5 s.
	Drain time.Duration

	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: not registered

	resolver *net.Resolver // of endpoints' names; nil: the system's
}

func (o Options) withDefaults() Options {
	set(&o.Timeout, 10*time.Second)
	if o.RetryDelays == nil {
		o.RetryDelays = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute}
	}
	set(&o.InFlight, 1024)
	set(&o.PerEndpoint, 4)
	set(&o.PerEndpointMax, 32)
	o.PerEndpoint = min(o.PerEndpoint, max(1, o.InFlight/16))
	o.PerEndpointMax = min(max(o.PerEndpointMax, o.PerEndpoint), max(1, o.InFlight/8))
	set(&o.Retention, 30*24*time.Hour)
	set(&o.Idle, 250*time.Millisecond)
	set(&o.Drain, 5*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func set[T ~int | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// database is a pool, or a transaction in which more is to be done.
type database interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// In is the room within the caller's transaction, for verbs that are to happen
// together with something else. Call Kick of the room itself once it is
// committed. It is not for Run.
func (w *Webhooks) In(tx pgx.Tx) *Webhooks {
	return &Webhooks{pool: tx, opts: w.opts, schedule: w.schedule, guard: w.guard, vault: w.vault, log: w.log, metrics: w.metrics,
		kick: make(chan struct{}, 1)}
}

// Webhooks is the room's door. Its methods may be called from many goroutines.
type Webhooks struct {
	pool     database
	owners   *pgx.ConnConfig // of the connection that shows who delivers
	opts     Options
	schedule schedule
	guard    guard
	vault    vault.Vault
	log      *slog.Logger
	metrics  *metrics
	kick     chan struct{}
	again    atomic.Bool // something undelivered is due that was not
	changes  changes
	testing  places
}

// New does no I/O and starts nothing. Run wants a pool that keeps the planner on
// index lookups (postgres.Options.BatchUpdates): its updates join unnested arrays.
func New(pool *pgxpool.Pool, opts Options) *Webhooks {
	opts = opts.withDefaults()
	w := &Webhooks{
		pool:     pool,
		opts:     opts,
		schedule: opts.RetryDelays,
		guard:    newGuard(opts.AllowPrivate),
		vault:    vault.New(opts.SecretKey, "company"),
		log:      opts.Log,
		metrics:  newMetrics(opts.Metrics),
		kick:     make(chan struct{}, 1),
	}
	if pool != nil {
		w.owners = pool.Config().ConnConfig
	}
	return w
}

// kickDue tells Run that a delivery is due again.
func (w *Webhooks) kickDue() {
	w.again.Store(true)
	w.Kick()
}

// Kick tells Run that deliveries have been committed, so that their first
// attempts start at once. It never blocks, and does nothing where Run does not run.
func (w *Webhooks) Kick() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}
