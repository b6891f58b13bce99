// Package throttle says whether a user may send again this minute: a fixed
// window that opens with the user's first request, counted over all instances
// in Redis (rule choices 1.9).
//
// Without Redis it is neither an error nor a free pass: each instance counts in
// its own memory until Redis answers again. A Redis that is away costs a request
// its short deadline only now and then, because after a failure it is left
// alone for a second. While instances count apart, a user may pass up to the
// limit in each of them; when they come back together, the windows in Redis
// stand as they were left.
package throttle

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// Options of a throttle; the zero value of each field means what it says.
type Options struct {
	Prefix  string                // begins every key
	Limit   int                   // requests in a window; 500 if 0
	Window  time.Duration         // length of a window, in whole milliseconds; a minute if 0
	Timeout time.Duration         // how long Redis may take to answer; 100 ms if 0
	Retry   time.Duration         // how long Redis is left alone after a failure; 1 s if 0
	Log     *slog.Logger          // nil: nothing is logged
	Metrics prometheus.Registerer // nil: nothing is registered
}

// Decision is the answer to one request, with what the X-RateLimit headers say.
type Decision struct {
	Allowed   bool
	Limit     int       // requests in a window
	Remaining int       // requests left in this window, this one counted
	ResetAt   time.Time // when the window ends, by this instance's clock
}

// Throttle is safe for concurrent use.
type Throttle struct {
	rdb     redis.UniversalClient
	options Options
	breaker breaker
	local   *local
	gather  *gather
	metrics metrics

	refusals      refusals
	foreignLogged atomic.Int64 // Unix second
}

// New makes a throttle. The client is the caller's to close.
func New(rdb redis.UniversalClient, options Options) *Throttle {
	setDefault(&options.Limit, 500)
	setDefault(&options.Window, time.Minute)
	setDefault(&options.Timeout, 100*time.Millisecond)
	setDefault(&options.Retry, time.Second)
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
	t.gather = &gather{t: t}
	return t
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Allow counts a request of a user and says whether it may pass. A refused one
// is not counted. It always decides: within Timeout by Redis, else by itself.
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

// countScript counts requests in a user's window, as many as still pass.
//
// KEYS[1] the user's counter. ARGV[1] the limit, ARGV[2] the window in ms,
// ARGV[3] how many requests there are. Answers how many of them pass, the
// requests counted in the window, and the ms until it ends.
//
// A counter without an end, or with one past the window's (someone touched it),
// gets the window's, so that nobody is shut out for longer. What no counter of
// ours can be (of another type, no number, negative, huge) is taken away and
// answered with three times -1: the caller decides by itself this time.
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

// key of a user's counter. The hash tag spreads users over a cluster.
func (t *Throttle) key(user int64) string {
	return t.options.Prefix + ":throttle:{" + strconv.FormatInt(user, 10) + "}"
}

// shared asks Redis; ok is false when it did not answer in time, or is being
// left alone.
func (t *Throttle) shared(ctx context.Context, user int64) (decision Decision, ok bool) {
	if !t.breaker.enter(time.Now()) {
		return Decision{}, false
	}
	// The caller's end is not Redis's failure: it must not open the breaker.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.options.Timeout)
	defer cancel()
	counted, err := t.gather.ask(ctx, user)
	if errors.Is(err, errForeign) { // Redis answers, and this counter is not ours
		t.foreign(ctx)
		return Decision{}, false
	}
	if err != nil {
		if t.breaker.fail(time.Now()) {
			t.options.Log.WarnContext(ctx, "rate limits are counted locally: redis does not answer", "error", err)
		}
		return Decision{}, false
	}
	if t.breaker.succeed() {
		t.options.Log.InfoContext(ctx, "rate limits are counted in redis again")
	}
	return Decision{
		Allowed:   counted.pass,
		Limit:     t.options.Limit,
		Remaining: max(0, t.options.Limit-counted.requests),
		ResetAt:   time.Now().Add(counted.left),
	}, true
}

// foreign says once a minute that somebody else writes our counters.
func (t *Throttle) foreign(ctx context.Context) {
	now := time.Now().Unix()
	if last := t.foreignLogged.Load(); now-last >= 60 && t.foreignLogged.CompareAndSwap(last, now) {
		t.options.Log.WarnContext(ctx, "foreign rate limit counter in redis deleted: does another program use this key prefix?",
			"prefix", t.options.Prefix)
	}
}

// refusals remembers until when users are refused, as far as this instance was
// told, so that they can be refused without asking Redis.
type refusals struct {
	mu    sync.Mutex
	until map[int64]time.Time
}

func (r *refusals) note(user int64, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.until) >= localUsers {
		clear(r.until) // they are refused again the next time that they ask
	}
	r.until[user] = until
}

// Refused says, from memory alone and without counting anything, whether a user
// was refused in a window that has not ended; until then Allow would refuse it
// again.
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

// errForeign is a counter that is none of ours.
var errForeign = errors.New("the counter is not ours")

// count is the answer of countScript.
type count struct {
	passed   int // of the requests counted together
	pass     bool
	requests int
	left     time.Duration
}

// Limit is how many requests pass in a window.
func (t *Throttle) Limit() int { return t.options.Limit }
