package webhooks

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
	"intumwa/internal/vault"
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
	// Facts returns what carriers said about a company's message, for callbacks that ask for it. nil: nothing.
	Facts func(ctx context.Context, company, messageID int64) (Facts, error)

	// InFlight limits the concurrent calls of this process; 1024. Slow endpoints get at most half of them, and one
	// endpoint an eighth.
	InFlight int

	// Lookups is the pool for customers' lists of deliveries, so that they take no connection from the messages; nil:
	// the pool of New.
	Lookups *pgxpool.Pool

	// History returns a company's sms.sent and sms.failed of messages that are final, since a time, with ids above after
	// and up to upTo: those among the first limit messages. last is the last message read; upTo if there are no more.
	// nil: none.
	History func(ctx context.Context, company, after, upTo int64, since time.Time, limit int) (events []Event, last int64,
		err error)

	// Retention is how long deliveries and their attempts, and events, are kept; 30 days.
	Retention time.Duration
	// Idle is the longest pause between looks for new and due deliveries; 250 ms.
	Idle time.Duration
	// Drain is how long calls in flight may take at shutdown; 5 s.
	Drain time.Duration

	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: not registered

	resolver *net.Resolver // for endpoints' names; nil: the system's
}

const (
	fewCalls  = 4  // of one endpoint at a time, after its first call and after a failure
	mostCalls = 32 // of one endpoint at a time, while it responds quickly
)

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

// core is what the parts share: the ways to the outside, and what wakes Run. It knows none of the parts.
type core struct {
	pool    postgres.DB
	lookups postgres.DB // for lists of deliveries
	opts    Options
	guard   guard
	client  *client
	vault   vault.Vault
	log     *slog.Logger
	metrics *metrics
	kick    chan struct{}
	changed *atomic.Bool // an endpoint changed: waiting deliveries may be due
	waiters *waiters     // requests that wait for events
}

// wait returns true after the pause, or false as soon as ctx ends.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
