package queue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Every script gets KEYS ring, bell, emptied, and the stream that it may create; and ARGV prefix of the stream keys.
// Other stream keys are made from the prefix: they share the slot of the named keys.
//
// While a cluster moves the slot, a script whose named keys are not all at one of the two nodes gets TRYAGAIN. A script
// must not create a stream that is not named: the stream may still be moving, and could not arrive.
//
// The common part defines join, which puts a company at the end of the ring, and ring, which makes the bell agree with
// the number of companies in the ring.
//
// A server whose memory is full refuses commands that may need memory, in the middle of a script. join and ring
// tolerate that: companies then do not rotate and waiters are not woken, but entries can be taken, which frees memory.
const common = `
local RING, BELL, PREFIX = KEYS[1], KEYS[2], ARGV[1]

local function join(company, condition)
  local last = redis.call('ZRANGE', RING, -1, -1, 'WITHSCORES')
  local turn = last[2] and tonumber(last[2]) or 0
  if not (turn < 1e15) then -- not ours: at such a size adding one changes nothing
    error('WRONGTYPE the ring holds turns that are not ours')
  end
  if last[1] ~= company then
    redis.pcall('ZADD', RING, condition, turn + 1, company)
  end
end

local function ring(companies)
  if companies == 0 then
    redis.call('DEL', BELL)
  elseif redis.call('LLEN', BELL) == 0 then
    redis.pcall('RPUSH', BELL, 1)
  end
end
`

// pushScript adds messages to one company's stream. The company joins the ring first, so emptyScript finds the stream
// even if it cannot be written to.
//
// ARGV[2] the company; ARGV[3] the seconds without a push after which the stream expires; then the messages.
var pushScript = redis.NewScript(common + `
local company = ARGV[2]
join(company, 'NX')
for i = 4, #ARGV do
  redis.call('XADD', PREFIX .. company, '*', 'm', ARGV[i])
end
redis.call('EXPIRE', PREFIX .. company, ARGV[3])
ring(1)
return #ARGV - 3
`)

// takeScript removes waiting entries, going round the ring: the company whose turn it is gives its share of what is
// still wanted and goes to the end, or leaves the ring if it had less. The work is bounded by what is wanted and a
// little more, for companies that are empty.
//
// ARGV[2] the most entries to take. Returns the number of companies still in the ring, then the messages. Foreign
// entries are removed.
var takeScript = redis.NewScript(common + `
local out, left, companies = {0}, tonumber(ARGV[2]), redis.call('ZCARD', RING)
local steps = left + 128
while left > 0 and steps > 0 and companies > 0 do
  steps = steps - 1
  local company = redis.call('ZRANGE', RING, 0, 0)[1]
  local stream = PREFIX .. company
  local share = math.min(math.ceil(left / companies), 1000) -- unpack takes some 8,000
  local entries, ids = redis.call('XRANGE', stream, '-', '+', 'COUNT', share), {}
  for i, entry in ipairs(entries) do
    ids[i] = entry[1]
    local field, message = entry[2][1], entry[2][2]
    if field == 'm' and #message <= 18 and string.match(message, '^%d+$') then
      out[#out + 1] = message
      left = left - 1
    end
  end
  if #entries < share then
    redis.call('DEL', stream)
    companies = companies - redis.call('ZREM', RING, company)
  else
    redis.call('XDEL', stream, unpack(ids))
    join(company, 'XX')
  end
end
ring(companies)
out[1] = companies
return out
`)

// oldestScript returns for how many milliseconds the oldest entry has waited; 0 when none waits. An entry from the
// future is foreign and hides the waiting time of later ones.
var oldestScript = redis.NewScript(common + `
local time = redis.call('TIME')
local now, age = time[1] * 1000 + math.floor(time[2] / 1000), 0
for _, company in ipairs(redis.call('ZRANGE', RING, 0, -1)) do
  local first = redis.call('XRANGE', PREFIX .. company, '-', '+', 'COUNT', 1)[1]
  if first then
    local waited = now - tonumber(string.match(first[1], '^%d+'))
    if waited < -60000 then
      error('WRONGTYPE an entry is from the future')
    end
    age = math.max(age, waited)
  end
end
return age
`)

// emptyScript deletes a lane, whatever its keys contain, unless that was done a moment ago. It writes in either case.
//
// ARGV[2] how many milliseconds a moment is. Returns 1 when it emptied the lane, else 0.
var emptyScript = redis.NewScript(common + `
local before = redis.call('PTTL', KEYS[3])
redis.call('SET', KEYS[3], 1, 'PX', before > 0 and before or ARGV[2])
if before > 0 then
  return 0
end
local companies = redis.pcall('ZRANGE', RING, 0, -1)
if not companies.err then
  for _, company in ipairs(companies) do
    redis.call('UNLINK', PREFIX .. company)
  end
end
redis.call('DEL', RING, BELL)
return 1
`)

// All keys of a carrier have its name as hash tag: a cluster keeps them in one slot, where scripts may use them
// together.
func (q *Queue) laneKey(carrier string, lane Lane) string {
	return q.prefix + ":queue:{" + carrier + "}:" + lane.String()
}

// ringKey is the sorted set of companies with waiting messages, by turn.
func (q *Queue) ringKey(carrier string, lane Lane) string { return q.laneKey(carrier, lane) + ":ring" }

// bellKey is a list with a token while the ring is not empty.
func (q *Queue) bellKey(carrier string, lane Lane) string { return q.laneKey(carrier, lane) + ":bell" }

// emptiedKey exists for a short time after the lane was emptied.
func (q *Queue) emptiedKey(carrier string, lane Lane) string {
	return q.laneKey(carrier, lane) + ":emptied"
}

// streamPrefix, followed by a company's id, names its stream; an entry has m, a message's id.
func (q *Queue) streamPrefix(carrier string, lane Lane) string {
	return q.laneKey(carrier, lane) + ":stream:"
}

// call is one run of a script on one lane.
type call struct {
	keys []string
	args []any
}

func (q *Queue) call(carrier string, lane Lane, args ...any) call {
	return call{
		keys: []string{q.ringKey(carrier, lane), q.bellKey(carrier, lane), q.emptiedKey(carrier, lane)},
		args: append([]any{q.streamPrefix(carrier, lane)}, args...),
	}
}

// run runs a script once, within the patience.
func (q *Queue) run(ctx context.Context, script *redis.Script, c call) *redis.Cmd {
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	return script.Run(ctx, q.rdb, c.keys, c.args...)
}

// runAll runs a script once for each call, in one pipeline. When the server lacks the script (it was restarted), it
// repeats the failed runs with the script's text. extra is the time for very many items, besides the patience.
func (q *Queue) runAll(ctx context.Context, script *redis.Script, extra time.Duration, calls []call) (err error) {
	ctx, cancel := context.WithTimeout(ctx, q.patience+extra)
	defer cancel()
	answers := make([]*redis.Cmd, len(calls))
	for _, text := range []bool{false, true} {
		pipe := q.rdb.Pipeline()
		for i, c := range calls {
			switch {
			case !text:
				answers[i] = script.EvalSha(ctx, pipe, c.keys, c.args...)
			case redis.HasErrorPrefix(answers[i].Err(), "NOSCRIPT"):
				answers[i] = script.Eval(ctx, pipe, c.keys, c.args...)
			}
		}
		if pipe.Len() == 0 {
			break
		}
		if _, err = pipe.Exec(ctx); err == nil {
			return nil
		}
	}
	return err
}
