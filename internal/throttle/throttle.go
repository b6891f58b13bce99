// Package throttle limits requests per user: in a fixed window that opens with the
// user's first request, counted over all instances in Redis (rule choices 1.9).
//
// Without Redis each instance counts in its own memory until Redis responds again. An
// absent Redis delays only a few requests by its short timeout, because a circuit
// breaker tries it once a second. Meanwhile a user may pass up to the limit in each
// instance; afterwards the windows in Redis continue.
package throttle

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"
)

const (
	defaultTimeout = 100 * time.Millisecond
	defaultRetry   = time.Second
)

// Options of a throttle. A zero field means its default.
type Options struct {
	Prefix  string                // of every key
	Limit   int                   // requests in a window; 500 if 0
	Window  time.Duration         // length of a window, in whole milliseconds; a minute if 0
	Timeout time.Duration         // for a response of Redis; 100 ms if 0
	Retry   time.Duration         // how long Redis is not called after a failure; 1 s if 0
	Log     *slog.Logger          // nil: nothing is logged
	Metrics prometheus.Registerer // nil: nothing is registered
}

// Decision is the result for one request, with the values of the X-RateLimit headers.
type Decision struct {
	Allowed   bool
	Limit     int       // requests in a window
	Remaining int       // requests left in this window after this one
	ResetAt   time.Time // when the window ends, by this instance's clock
}

// Throttle is safe for concurrent use.
type Throttle struct {
	rdb     redis.UniversalClient
	options Options
	breaker breaker
	local   *local
	gather  *batcher
	metrics metrics

	refusals      refusals
	foreignLogged atomic.Int64 // Unix second
}

// New returns a throttle. The caller closes the client.
func New(rdb redis.UniversalClient, options Options) *Throttle {
	options.Limit = cmp.Or(options.Limit, 500)
	options.Window = cmp.Or(options.Window, time.Minute)
	options.Timeout = cmp.Or(options.Timeout, defaultTimeout)
	options.Retry = cmp.Or(options.Retry, defaultRetry)
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	t := &Throttle{
		rdb:     rdb,
		options: options,
		breaker: breaker{retry: options.Retry},
		local:   newLocal(options.Limit, options.Window),
		metrics: newMetrics(options.Metrics),

		refusals: refusals{until: make(map[int64]time.Time)},
	}
	t.gather = &batcher{t: t}
	return t
}

// Allow counts a request of a user and returns whether it may pass. A refused request
// is not counted. It always decides: by Redis within twice Timeout, else by local counts.
func (t *Throttle) Allow(ctx context.Context, user int64) Decision {
	decision, ok := t.shared(ctx, user)
	if !ok {
		t.metrics.local.Inc()
		decision = t.local.allow(user, time.Now())
	}
	if !decision.Allowed {
		t.metrics.refused.Inc()
		t.refusals.note(user, decision.ResetAt)
	}
	return decision
}

// GiveBack undoes one counted request of a user, which turned out not to count.
func (t *Throttle) GiveBack(ctx context.Context, user int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.options.Timeout)
	defer cancel()
	if giveBackScript.Run(ctx, once{t.rdb}, []string{t.key(user)}).Err() != nil { // then Allow counts locally too
		t.local.giveBack(user)
	}
}

var giveBackScript = redis.NewScript(`
local count = redis.pcall('GET', KEYS[1])
if type(count) == 'string' and (tonumber(count) or 0) > 0 then
  return redis.call('DECR', KEYS[1])
end
return 0
`)

// countScript counts requests in a user's window, as many as still pass.
//
// KEYS[1] the user's counter. ARGV[1] the limit, ARGV[2] the window in ms,
// ARGV[3] the number of requests. Returns how many of them pass, the requests counted
// in the window, and the ms until it ends.
//
// A counter without an expiry, or with one beyond the window (another program changed
// it), gets the window's expiry, so no user is refused for longer. An invalid value
// (another type, not a number, negative, huge) is deleted, and the script returns -1
// three times: the caller then counts locally.
var countScript = redis.NewScript(`
local raw = redis.pcall('GET', KEYS[1])
local count = 0
if type(raw) == 'string' then
  count = string.match(raw, '^%d+$') and #raw < 10 and tonumber(raw)
elseif raw then
  count = nil
end
if not count then
  redis.call('DEL', KEYS[1])
  return {-1, -1, -1}
end
local left = redis.call('PTTL', KEYS[1])
local pass = math.min(tonumber(ARGV[3]), math.max(tonumber(ARGV[1]) - count, 0))
if pass > 0 then
  count = redis.call('INCRBY', KEYS[1], pass)
end
if left < 0 or left > tonumber(ARGV[2]) then
  left = tonumber(ARGV[2])
  redis.call('PEXPIRE', KEYS[1], left)
end
return {pass, count, left}
`)

// key returns the key of a user's counter. The hash tag spreads users over a cluster.
func (t *Throttle) key(user int64) string {
	return t.options.Prefix + ":throttle:{" + strconv.FormatInt(user, 10) + "}"
}

// shared counts in Redis; ok is false when Redis did not respond in time or the breaker is
// open.
func (t *Throttle) shared(ctx context.Context, user int64) (decision Decision, ok bool) {
	if !t.breaker.enter(time.Now()) {
		return Decision{}, false
	}
	// A caller that disconnects is not a failure of Redis and must not open the breaker.
	counted, err := t.gather.count(user)
	if errors.Is(err, errForeign) { // Redis responds, but this counter is not ours
		t.logForeign(ctx)
		return Decision{}, false
	}
	if err != nil {
		if t.breaker.fail(time.Now()) {
			t.options.Log.WarnContext(ctx, "rate limits are counted locally: redis does not answer", "event",
				"rate_limits_local", "error", err)
		}
		return Decision{}, false
	}
	if t.breaker.succeed() {
		t.options.Log.InfoContext(ctx, "rate limits are counted in redis again", "event", "rate_limits_shared")
	}
	return Decision{
		Allowed:   counted.pass,
		Limit:     t.options.Limit,
		Remaining: max(0, t.options.Limit-counted.requests),
		ResetAt:   time.Now().Add(counted.left),
	}, true
}

// logForeign logs, once a minute, that another program writes our keys.
func (t *Throttle) logForeign(ctx context.Context) {
	now := time.Now().Unix()
	if last := t.foreignLogged.Load(); now-last >= 60 && t.foreignLogged.CompareAndSwap(last, now) {
		t.options.Log.WarnContext(ctx,
			"foreign rate limit counter in redis deleted: does another program use this key prefix?",
			"event", "rate_limit_foreign", "prefix", t.options.Prefix)
	}
}

// refusals records until when this instance refuses users, without a call of Redis.
type refusals struct {
	mu    sync.Mutex
	until map[int64]time.Time
}

func (r *refusals) note(user int64, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.until) >= localUsers {
		clear(r.until) // Redis refuses them again
	}
	r.until[user] = until
}

// Refused reports, from memory and without counting, whether a user was refused in a
// window that has not ended; Allow would refuse the user until then.
func (t *Throttle) Refused(user int64) (until time.Time, refused bool) {
	t.refusals.mu.Lock()
	defer t.refusals.mu.Unlock()
	until, refused = t.refusals.until[user]
	if refused && !time.Now().Before(until) {
		delete(t.refusals.until, user)
		return time.Time{}, false
	}
	return until, refused
}

// errForeign means that another program wrote to a counter's key.
var errForeign = errors.New("the counter is not ours")

// count is the result of countScript.
type count struct {
	passed   int // of the requests counted together
	pass     bool
	requests int
	left     time.Duration
}

// Limit returns how many requests pass in a window.
func (t *Throttle) Limit() int { return t.options.Limit }

type metrics struct {
	refused prometheus.Counter
	local   prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) metrics {
	register := promauto.With(registerer)
	return metrics{
		refused: register.NewCounter(prometheus.CounterOpts{Name: "intumwa_rate_limited_total",
			Help: "Requests above the rate limit."}),
		local: register.NewCounter(prometheus.CounterOpts{Name: "intumwa_rate_limit_local_total",
			Help: "Requests counted by one process alone, without Redis."}),
	}
}
