package throttle

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"
)

// Repeats counts how often a company sends a text to a number, and how many messages to a
// number, over all instances in Redis. Each count has its own key with a part of the
// keyed hash of text and number, never the text or the number. It lasts until the day in
// Burundi ends; the time of the last send is kept for a day. Without Redis nothing is
// counted, and everything passes.
//
// A request with a name, which its client may repeat, is counted once: a key of its own
// records it for a quarter of an hour.
type Repeats struct {
	rdb     redis.UniversalClient
	options RepeatOptions
	breaker breaker
	passed  prometheus.Counter
}

// RepeatOptions of Repeats. A zero field means its default.
type RepeatOptions struct {
	Prefix  string                // of every key
	Key     []byte                // of the hashes: the same in every instance
	Timeout time.Duration         // for a response of Redis; 100 ms if 0
	Now     func() time.Time      // the clock that decides which day it is; time.Now if nil
	Log     *slog.Logger          // nil: nothing is logged
	Metrics prometheus.Registerer // nil: nothing is registered
}

// requestLife is how long a counted request is remembered; an idempotency key lives longer.
const requestLife = 15 * time.Minute

// NewRepeats returns counts of repeats. The caller closes the client.
func NewRepeats(rdb redis.UniversalClient, options RepeatOptions) *Repeats {
	options.Timeout = cmp.Or(options.Timeout, defaultTimeout)
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Repeats{rdb: rdb, options: options, breaker: breaker{retry: defaultRetry},
		passed: promauto.With(options.Metrics).NewCounter(prometheus.CounterOpts{Name: "intumwa_limits_unenforced_total",
			Help: "Messages not counted by limits because Redis failed or was full."})}
}

// RepeatLimits are how often something may be sent to a number; a zero field sets no
// limit.
type RepeatLimits struct {
	Interval time.Duration // between two sends of a text; at most a day
	Texts    int           // sends of a text on a day
	Messages int           // on a day, with any text
}

// Any reports whether there is a limit.
func (l RepeatLimits) Any() bool { return l.Interval > 0 || l.Texts > 0 || l.Messages > 0 }

// Repeat is a limit that is reached.
type Repeat int

// The limits.
const (
	NoRepeat        Repeat = iota
	TooSoon                // the text went to the number within the interval
	TooManyTexts           // the text went to the number as often as it may on a day
	TooManyMessages        // the number got as many messages as it may on a day
)

// Sending is one message to be counted.
type Sending struct{ Number, Text string }

// Counted are messages that were counted together.
type Counted struct {
	r     *Repeats
	keys  []string
	kinds []any // of the keys
}

// Count counts messages of a company, all or none. first is the first message that reaches
// a limit; then nothing is counted. Earlier messages of the same call count. If Redis does
// not reply, all pass uncounted. It returns within Timeout.
//
// request identifies the request when it is repeated; "": it has no name. A request that
// any instance counted within a quarter of an hour, and did not undo, passes without
// another count, and Undo of its Counted does nothing.
func (r *Repeats) Count(ctx context.Context, company int64, limits RepeatLimits, request string, messages []Sending) (
	counted Counted, first int, reached Repeat) {
	if !limits.Any() || len(messages) == 0 {
		return Counted{}, 0, NoRepeat
	}
	if !r.breaker.enter(time.Now()) {
		r.passed.Add(float64(len(messages)))
		return Counted{}, 0, NoRepeat
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.options.Timeout)
	defer cancel()
	c := r.call(company, limits, request, messages)
	reply, err := repeatScript.Run(ctx, once{r.rdb}, c.keys, c.args...).Int64Slice()
	if err == nil && (len(reply) != 2 || reply[0] < 0 || reply[0] > int64(len(c.of))) {
		err = fmt.Errorf("the answer %v", reply)
	}
	if err != nil {
		r.passed.Add(float64(len(messages)))
		if r.breaker.fail(time.Now()) {
			r.options.Log.WarnContext(ctx, "limits on repeated messages are not enforced: redis does not answer", "event",
				"repeat_limits_off", "error", err)
		}
		return Counted{}, 0, NoRepeat
	}
	if r.breaker.succeed() {
		r.options.Log.InfoContext(ctx, "limits on repeated messages are enforced again", "event", "repeat_limits_on")
	}
	switch at := reply[0]; {
	case at > 0:
		return Counted{}, c.of[at-1], c.limits[at-1]
	case reply[1] == 0: // the request was counted before
		return Counted{}, 0, NoRepeat
	}
	return Counted{r, c.keys, c.kinds}, 0, NoRepeat
}

// Undo removes the counts of messages that were not sent: the next one is then not too
// soon, and their request counts as new. Without a reply of Redis they stay counted, for
// the interval and the rest of the day.
func (c Counted) Undo(ctx context.Context) {
	if c.r == nil || !c.r.breaker.enter(time.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.r.options.Timeout)
	defer cancel()
	if err := undoScript.Run(ctx, once{c.r.rdb}, c.keys, c.kinds...).Err(); err != nil {
		c.r.breaker.fail(time.Now())
		c.r.options.Log.DebugContext(ctx, "messages that were not sent stay counted as repeats", "error", err)
		return
	}
	c.r.breaker.succeed()
}

// What a key holds.
const (
	keyLast    = "last"    // when a text was last sent to a number, in ms
	keyCount   = "count"   // how often something was sent on a day
	keyRequest = "request" // that a request was counted
)

// repeatCall is what repeatScript gets: a key for each limit of each message, then the
// request's.
type repeatCall struct {
	keys   []string
	kinds  []any
	args   []any
	of     []int    // the message of each key
	limits []Repeat // the limit that each key stands for
}

func (r *Repeats) call(company int64, limits RepeatLimits, request string, messages []Sending) (c repeatCall) {
	now := r.options.Now().UTC().Add(2 * time.Hour) // in Burundi
	midnight := now.Truncate(24 * time.Hour)
	day, left := midnight.Format("20060102"), midnight.Add(24*time.Hour+time.Minute).Sub(now)
	hash := hmac.New(sha256.New, r.options.Key)
	// one slot of a cluster: a batch is counted atomically
	start := r.options.Prefix + ":repeats:{" + strconv.FormatInt(company, 10) + "}:"
	add := func(kind, name string, most, life int64, what ...string) {
		hash.Reset()
		var id [8]byte
		binary.BigEndian.PutUint64(id[:], uint64(company))
		_, _ = hash.Write(id[:])
		for _, text := range what {
			_, _ = hash.Write([]byte(text)) // a number's length is fixed
		}
		c.keys = append(c.keys, start+name+":"+base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:12]))
		c.kinds = append(c.kinds, kind)
		c.args = append(c.args, kind, most, life)
	}
	for i, m := range messages {
		if limits.Interval > 0 {
			add(keyLast, "last", limits.Interval.Milliseconds(), (24 * time.Hour).Milliseconds(), m.Number, m.Text)
			c.of, c.limits = append(c.of, i), append(c.limits, TooSoon)
		}
		if limits.Texts > 0 {
			add(keyCount, "texts:"+day, int64(limits.Texts), left.Milliseconds(), m.Number, m.Text)
			c.of, c.limits = append(c.of, i), append(c.limits, TooManyTexts)
		}
		if limits.Messages > 0 {
			add(keyCount, "messages:"+day, int64(limits.Messages), left.Milliseconds(), m.Number)
			c.of, c.limits = append(c.of, i), append(c.limits, TooManyMessages)
		}
	}
	if request != "" {
		add(keyRequest, "request", 1, requestLife.Milliseconds(), request)
	}
	return c
}

// repeatScript counts messages, all or none, unless their request was counted before.
//
// KEYS are the counts, then the request's key, if it has a name. ARGV has three for each:
// what it holds, its limit (the interval in ms, or how often), and how long it lives in
// ms. A value that another program wrote counts as none.
//
// It returns {j, 0} for the first key whose limit is reached, {0, 0} for a request that was
// counted before, else {0, 1}.
var repeatScript = redis.NewScript(`
if ARGV[#ARGV - 2] == 'request' and redis.call('EXISTS', KEYS[#KEYS]) == 1 then
  return {0, 0}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local values = {}
for j, key in ipairs(KEYS) do
  local holds, most = ARGV[3 * j - 2], tonumber(ARGV[3 * j - 1])
  local value = values[key] or tonumber(redis.pcall('GET', key)) or 0
  if holds == 'last' then
    if value <= now and now - value < most then
      return {j, 0}
    end
    values[key] = now
  else
    if value >= most then
      return {j, 0}
    end
    values[key] = value + 1
  end
end
for j, key in ipairs(KEYS) do
  redis.call('SET', key, string.format('%d', values[key]), 'PX', ARGV[3 * j])
end
return {0, 1}
`)

// undoScript removes what repeatScript counted under KEYS. ARGV has the kind of each.
// Later counts stay; an earlier time of sending is already older than the interval.
var undoScript = redis.NewScript(`
for j, key in ipairs(KEYS) do
  local value = tonumber(redis.pcall('GET', key))
  if ARGV[j] == 'count' and value and value > 1 then
    redis.call('SET', key, string.format('%d', value - 1), 'KEEPTTL')
  else
    redis.call('DEL', key)
  end
end
`)
