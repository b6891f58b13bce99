package throttle

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// Repeats counts how often a company sends the same text to a number, and how many
// messages to a number, over all instances in Redis. It keeps neither texts nor numbers,
// but parts of their keyed hashes, until the day in Burundi is over and an hour more, or
// as long as the interval if that is longer.
//
// A company's counts of a day lie in up to 16,384 hashes of at most 128 fields each,
// some 30 octets a field: what is beyond that, two million in a day, is not counted.
// Without Redis nothing is counted, and everything passes.
//
// A request that may be repeated by its client (it has a name) is counted once: for a
// quarter of an hour a key of its own, some 100 octets, says that it was.
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
	Retry   time.Duration         // how long Redis is not asked after three failures; 1 s if 0
	Now     func() time.Time      // the clock that says which day it is; time.Now if nil
	Log     *slog.Logger          // nil: nothing is logged
	Metrics prometheus.Registerer // nil: nothing is registered
}

const (
	repeatBuckets = 1 << 14
	bucketFields  = 128 // Redis keeps a hash of so many short fields in one piece
	bucketSpare   = time.Hour
	requestLife   = 15 * time.Minute // how long a request is remembered that was counted; an idempotency key lives longer
)

// NewRepeats returns counts of repeats. The caller closes the client.
func NewRepeats(rdb redis.UniversalClient, options RepeatOptions) *Repeats {
	setDefault(&options.Timeout, 100*time.Millisecond)
	setDefault(&options.Retry, time.Second)
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	r := &Repeats{rdb: rdb, options: options, breaker: breaker{retry: options.Retry},
		passed: prometheus.NewCounter(prometheus.CounterOpts{Name: "intumwa_limits_unenforced_total",
			Help: "Messages that limits on repeats should have counted and did not, because Redis did not answer or had no room for more."})}
	if options.Metrics != nil {
		options.Metrics.MustRegister(r.passed)
	}
	return r
}

// RepeatLimits are how often something may be sent to a number; a zero field sets no
// limit.
type RepeatLimits struct {
	Interval time.Duration // between two sends of a text; at most a day
	Texts    int           // sends of a text on a day
	Messages int           // on a day, whatever they say
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
	r      *Repeats
	keys   []string // of the fields, then that of the request
	fields []any
	stamp  int64
}

// Count counts messages of a company, all of them or none: the first that reaches a
// limit is at the returned place, and nothing is counted. The messages before it in the
// same call count. Without an answer of Redis all pass uncounted. It returns within
// Timeout.
//
// request names what the messages are of, the same when it is repeated; "": it has no
// name. One that was counted within a quarter of an hour, by any instance, and not
// taken back passes and is not counted again: Undo of such a Counted does nothing.
func (r *Repeats) Count(ctx context.Context, company int64, limits RepeatLimits, request string, messages []Sending) (counted Counted, first int, reached Repeat) {
	if !limits.Any() || len(messages) == 0 {
		return Counted{}, 0, NoRepeat
	}
	if !r.breaker.enter(time.Now()) {
		r.passed.Add(float64(len(messages)))
		return Counted{}, 0, NoRepeat
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.options.Timeout)
	defer cancel()
	b := r.fields(company, limits, request, messages)
	reply, err := repeatScript.Run(ctx, once{r.rdb}, b.keys, b.args...).Int64Slice()
	if err == nil && len(reply) != 3 {
		err = fmt.Errorf("%d values instead of 3", len(reply))
	}
	if err != nil {
		r.passed.Add(float64(len(messages)))
		if r.breaker.fail(time.Now()) {
			r.options.Log.WarnContext(ctx, "limits on repeated messages are not enforced: redis does not answer", "error", err)
		}
		return Counted{}, 0, NoRepeat
	}
	if r.breaker.succeed() {
		r.options.Log.InfoContext(ctx, "limits on repeated messages are enforced again")
	}
	if at := int(reply[0]); at > 0 && at <= len(b.of) {
		return Counted{}, b.of[at-1], Repeat(reply[1])
	}
	r.passed.Add(float64(reply[1]))
	if reply[2] == 0 { // the request was counted before
		return Counted{}, 0, NoRepeat
	}
	keys := b.keys[:len(b.of):len(b.of)]
	if request != "" {
		keys = append(keys, b.keys[len(b.keys)-1])
	}
	return Counted{r: r, keys: keys, fields: b.args[repeatArgs:], stamp: reply[2]}, 0, NoRepeat
}

// Undo takes back what was counted, of messages that were not sent after all: the next
// one is then not too soon, and their request is one that was not counted. Without an
// answer of Redis they stay counted, for the interval and the rest of the day.
func (c Counted) Undo(ctx context.Context) {
	if c.r == nil || !c.r.breaker.enter(time.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.r.options.Timeout)
	defer cancel()
	if err := undoScript.Run(ctx, once{c.r.rdb}, c.keys, append([]any{c.stamp}, c.fields...)...).Err(); err != nil {
		c.r.breaker.fail(time.Now())
		c.r.options.Log.DebugContext(ctx, "messages that were not sent stay counted as repeats", "error", err)
		return
	}
	c.r.breaker.succeed()
}

// repeatCall is what repeatScript gets.
type repeatCall struct {
	keys []string
	args []any
	of   []int // the message of each field
}

// repeatArgs are how many arguments of repeatScript come before the fields.
const repeatArgs = 5

// fields are the fields of messages and the keys that they lie under, and the key of
// their request.
func (r *Repeats) fields(company int64, limits RepeatLimits, request string, messages []Sending) (b repeatCall) {
	now := r.options.Now().UTC().Add(2 * time.Hour) // as clocks in Burundi show it
	midnight := now.Truncate(24 * time.Hour)
	end := midnight.Add(24*time.Hour + max(bucketSpare, limits.Interval))
	remember := time.Duration(0)
	if request != "" {
		remember = requestLife
	}
	b.args = []any{limits.Interval.Milliseconds(), limits.Texts, limits.Messages, end.Sub(now).Milliseconds(), remember.Milliseconds()}
	var before []string // of the day before, as long as the interval reaches back to it
	crossed := now.Sub(midnight) < limits.Interval
	hash := hmac.New(sha256.New, r.options.Key)
	var sum [sha256.Size]byte
	digest := func(kind byte, what ...string) {
		hash.Reset()
		var id [9]byte
		id[0] = kind
		binary.BigEndian.PutUint64(id[1:], uint64(company))
		_, _ = hash.Write(id[:])
		for _, text := range what {
			_, _ = hash.Write([]byte(text)) // a number's length is fixed
		}
		hash.Sum(sum[:0])
	}
	add := func(i int, kind byte, what ...string) {
		digest(kind, what...)
		bucket := int(binary.BigEndian.Uint16(sum[:])) % repeatBuckets
		b.keys = append(b.keys, r.key(company, midnight, bucket))
		if crossed {
			before = append(before, r.key(company, midnight.Add(-24*time.Hour), bucket))
		}
		b.args = append(b.args, string(kind)+string(sum[2:13]))
		b.of = append(b.of, i)
	}
	for i, m := range messages {
		if limits.Interval > 0 || limits.Texts > 0 {
			add(i, 't', m.Number, m.Text)
		}
		if limits.Messages > 0 {
			add(i, 'n', m.Number)
		}
	}
	b.keys = append(b.keys, before...)
	if request != "" {
		digest('r', request)
		b.keys = append(b.keys, r.of(company)+"request:"+hex.EncodeToString(sum[:16]))
	}
	return b
}

// of is how the keys of a company begin: all of them in one slot of a cluster, so that a
// batch is counted at once.
func (r *Repeats) of(company int64) string {
	return r.options.Prefix + ":repeats:{" + strconv.FormatInt(company, 10) + "}:"
}

// key is where a bucket of a company and day lies.
func (r *Repeats) key(company int64, day time.Time, bucket int) string {
	var octets [2]byte
	binary.BigEndian.PutUint16(octets[:], uint16(bucket))
	return r.of(company) + day.Format("20060102") + ":" + hex.EncodeToString(octets[:])
}

// repeatScript counts messages, all or none, unless their request was counted before.
//
// KEYS[j] is the hash of field j, and where the interval reaches back to the day before,
// KEYS[n+j] that of the day before; the last one is the request's, if that has a name.
// ARGV: the interval in ms, how often a text, how many messages (0: no limit), how long a
// hash lives in ms, how long the request is remembered (0: it has no name), then n
// fields, which begin with t (a text to a number) or n (a number). A field's value is its
// count and when it was last counted, in ms.
//
// It returns {j, limit, 0} for the first field that reaches a limit, {0, 0, 0} for a
// request that was counted before, else {0, the number of fields that there was no room
// for, the time}. What another program wrote there counts as nothing.
var repeatScript = redis.NewScript(`
local interval, texts, numbers, life = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local remember = tonumber(ARGV[5])
local n = #ARGV - 5
local crossed = #KEYS > n + 1 or #KEYS > n and remember == 0
if remember > 0 and redis.call('EXISTS', KEYS[#KEYS]) == 1 then
  return {0, 0, 0}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function read(key, field)
  local raw = redis.pcall('HGET', key, field)
  if type(raw) ~= 'string' then
    return 0, 0
  end
  local count, last = string.match(raw, '^(%d+) (%d+)$')
  if not count or #raw > 30 then
    return 0, 0
  end
  return tonumber(count), tonumber(last)
end
local counts, lasts, order = {}, {}, {}
for j = 1, n do
  local field = ARGV[5 + j]
  local id = KEYS[j] .. ' ' .. field
  local text = string.sub(field, 1, 1) == 't'
  if not counts[id] then
    counts[id], lasts[id] = read(KEYS[j], field)
    if text and lasts[id] == 0 and crossed then
      local _, last = read(KEYS[n + j], field)
      lasts[id] = last
    end
    order[#order + 1] = {KEYS[j], field, id}
  end
  if text then
    local ago = now - lasts[id]
    if interval > 0 and ago >= 0 and ago < interval then
      return {j, 1, 0}
    end
    if texts > 0 and counts[id] >= texts then
      return {j, 2, 0}
    end
  elseif numbers > 0 and counts[id] >= numbers then
    return {j, 3, 0}
  end
  counts[id], lasts[id] = counts[id] + 1, now
end
local left = 0
for _, each in ipairs(order) do
  local size = redis.pcall('HLEN', each[1])
  if type(size) ~= 'number' then
    redis.call('DEL', each[1])
    size = 0
  end
  if size < ` + strconv.Itoa(bucketFields) + ` or redis.call('HEXISTS', each[1], each[2]) == 1 then
    redis.call('HSET', each[1], each[2], string.format('%d %d', counts[each[3]], lasts[each[3]]))
    if size == 0 then
      redis.call('PEXPIRE', each[1], life)
    end
  else
    left = left + 1
  end
end
if remember > 0 then
  redis.call('SET', KEYS[#KEYS], '', 'PX', remember)
end
return {0, left, now}
`)

// undoScript takes fields back that repeatScript counted at the time ARGV[1], and forgets
// their request, if it has a key behind theirs. What was counted since stays; what was
// counted before is longer ago than the interval.
var undoScript = redis.NewScript(`
local n = #ARGV - 1
if #KEYS > n then
  redis.call('DEL', KEYS[n + 1])
end
for j = 1, n do
  local raw = redis.pcall('HGET', KEYS[j], ARGV[1 + j])
  local count, last
  if type(raw) == 'string' then
    count, last = string.match(raw, '^(%d+) (%d+)$')
  end
  if count then
    if last == ARGV[1] then
      last = '0'
    end
    if tonumber(count) > 1 then
      redis.call('HSET', KEYS[j], ARGV[1 + j], string.format('%d %s', tonumber(count) - 1, last))
    else
      redis.call('HDEL', KEYS[j], ARGV[1 + j])
    end
  end
end
return 0
`)
