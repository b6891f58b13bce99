package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Every script gets KEYS ring, streams, bell, the streams that its caller knows it
// touches, and ARGV group, prefix of the stream keys, keep ("1" when an empty stream
// is kept: the single lane's). Other stream keys are made from the prefix: they share
// the slot of those that are named.
//
// While a cluster moves the slot to another node, a script whose named keys are not
// all at one of the two is answered TRYAGAIN. A stream that is not named must not be
// made: it may still be on its way, and could then not come.
//
// The common part gives them: join, which puts a company at the end of the
// ring; leave, which takes one out of it; sweep, which deletes an empty stream
// that is not in the ring; ring, which makes the bell agree with the ring.
//
// A server whose memory is full refuses what could make it grow, in the middle
// of a script. join and ring bear that: then companies do not rotate and waiters
// are not woken, but what is on the queue can be taken and finished (Done), which
// makes room again.
const common = `
local RING, STREAMS, BELL = KEYS[1], KEYS[2], KEYS[3]
local GROUP, PREFIX, KEEP = ARGV[1], ARGV[2], ARGV[3] == '1'

local function join(company)
  local last = redis.call('ZRANGE', RING, -1, -1, 'WITHSCORES')
  local turn = last[2] and tonumber(last[2]) or 0
  if not (turn < 1e15) then -- not ours: at such a size adding one changes nothing
    local companies = redis.call('ZRANGE', RING, 0, -1)
    redis.call('DEL', RING)
    for i, other in ipairs(companies) do
      redis.pcall('ZADD', RING, i, other)
    end
    turn = #companies
  end
  redis.pcall('ZADD', RING, turn + 1, company)
end

-- grouped makes sure that the group is there, and returns whether it was not.
local function grouped(company)
  return redis.pcall('XGROUP', 'CREATE', PREFIX .. company, GROUP, '0', 'MKSTREAM').ok ~= nil
end

local function ours(id)
  return id and #id <= 18 and string.match(id, '^%d+$')
end

local function sweep(company)
  if KEEP or redis.call('XLEN', PREFIX .. company) > 0 or redis.call('ZSCORE', RING, company) then
    return
  end
  redis.call('DEL', PREFIX .. company)
  redis.call('SREM', STREAMS, company)
end

local function leave(company)
  redis.call('ZREM', RING, company)
  sweep(company)
end

local function ring()
  if redis.call('ZCARD', RING) == 0 then
    redis.call('DEL', BELL)
  elseif redis.call('LLEN', BELL) == 0 then
    redis.pcall('RPUSH', BELL, 1)
  end
end

-- collect appends company, id, message and company id of each entry to out and
-- returns how many; an entry that is not ours is removed.
local function collect(out, company, entries)
  local n = 0
  for _, entry in ipairs(entries) do
    local fields = entry and entry[2]
    if fields and fields[1] == 'm' and fields[3] == 'c' and ours(fields[2]) and ours(fields[4]) then
      n = n + 1
      out[#out + 1], out[#out + 2], out[#out + 3], out[#out + 4] = company, entry[1], fields[2], fields[4]
    elseif entry then
      redis.call('XACK', PREFIX .. company, GROUP, entry[1])
      redis.call('XDEL', PREFIX .. company, entry[1])
    end
  end
  return n
end
`

// pushScript adds items to one company's stream.
//
// ARGV[4] the company; then message id and company id of each item.
// Returns the number of items.
var pushScript = redis.NewScript(common + `
local company = ARGV[4]
local stream = PREFIX .. company
redis.call('SADD', STREAMS, company) -- first: what fails below can be found, and emptied
if redis.call('EXISTS', stream) == 0 then
  redis.call('XGROUP', 'CREATE', stream, GROUP, '0', 'MKSTREAM')
end
for i = 5, #ARGV, 2 do
  redis.call('XADD', stream, '*', 'm', ARGV[i], 'c', ARGV[i + 1])
end
if not redis.call('ZSCORE', RING, company) then
  join(company)
end
ring()
return (#ARGV - 4) / 2
`)

// takeScript delivers waiting entries, going round the ring: the company whose
// turn it is gives its share of what is still asked for and goes to the end, or
// leaves the ring if it had less. The work is bounded by what is asked for and a
// little more, for companies that turn out to be empty.
//
// ARGV[4] the consumer; ARGV[5] the most entries to deliver.
// Returns the companies still in the ring; then company, id, message id and
// company id of each entry. An error only if nothing was delivered.
var takeScript = redis.NewScript(common + `
local out, left = {0}, tonumber(ARGV[5])
local steps = left + 128
while left > 0 and steps > 0 do
  steps = steps - 1
  local company = redis.call('ZRANGE', RING, 0, 0)[1]
  if not company then
    break
  end
  local share = math.ceil(left / redis.call('ZCARD', RING))
  local answer = redis.pcall('XREADGROUP', 'GROUP', GROUP, ARGV[4], 'COUNT', share, 'STREAMS', PREFIX .. company, '>')
  if answer and answer.err and string.find(answer.err, 'NOGROUP', 1, true) then
    answer = redis.call('EXISTS', PREFIX .. company) == 1 and redis.pcall('XGROUP', 'CREATE', PREFIX .. company, GROUP, '0')
    if not answer then -- it is gone, or on its way from another node: reclaimScript sees which
      redis.call('ZREM', RING, company)
    end
  elseif not answer then
    leave(company)
  end
  if not answer then
    -- the next company
  elseif answer.ok then
    -- a new group: read again
  elseif answer.err then
    join(company)
    if #out == 1 then
      return answer
    end
    break
  else
    local entries = answer[1][2]
    left = left - collect(out, company, entries)
    if #entries < share then
      leave(company)
    else
      join(company)
    end
  end
end
ring()
out[1] = redis.call('ZCARD', RING)
return out
`)

// doneScript removes entries of one company's stream.
//
// ARGV[4] the company; then the ids.
// Returns how many there still were.
var doneScript = redis.NewScript(common + `
local company = ARGV[4]
local gone = 0
if redis.call('EXISTS', PREFIX .. company) == 1 then
  redis.call('XACK', PREFIX .. company, GROUP, unpack(ARGV, 5))
  gone = redis.call('XDEL', PREFIX .. company, unpack(ARGV, 5))
  sweep(company)
end
return gone
`)

// reclaimScript hands entries that have been pending too long to a consumer and
// repairs what it comes across: a company with something waiting that is not in
// the ring joins it, an empty stream is deleted, and so is a consumer that has
// long been idle and has nothing pending.
//
// ARGV[4] the consumer; ARGV[5] the least idle time in ms; ARGV[6] the most
// entries; ARGV[7] the idle time in ms after which a consumer goes; then the
// companies.
// Returns company, id, message id and company id of each entry.
var reclaimScript = redis.NewScript(common + `
local out, left = {}, tonumber(ARGV[6])
for i = 8, #ARGV do
  local company = ARGV[i]
  local stream = PREFIX .. company
  if redis.call('EXISTS', stream) == 0 then
    redis.call('SREM', STREAMS, company)
  else
    grouped(company)
    local cursor = '0-0'
    repeat
      if left == 0 then
        break
      end
      local answer = redis.call('XAUTOCLAIM', stream, GROUP, ARGV[4], ARGV[5], cursor, 'COUNT', left)
      cursor = answer[1]
      left = left - collect(out, company, answer[2])
    until cursor == '0-0'
    for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', stream, GROUP)) do
      local consumer = {}
      for j = 1, #info, 2 do
        consumer[info[j]] = info[j + 1]
      end
      if consumer.pending == 0 and consumer.idle >= tonumber(ARGV[7]) and consumer.name ~= ARGV[4] then
        redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, consumer.name)
      end
    end
    local delivered = '0-0'
    for _, info in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
      local g = {}
      for j = 1, #info, 2 do
        g[info[j]] = info[j + 1]
      end
      if g.name == GROUP then
        delivered = g['last-delivered-id']
      end
    end
    if redis.call('XRANGE', stream, '(' .. delivered, '+', 'COUNT', 1)[1] and not redis.call('ZSCORE', RING, company) then
      join(company)
    end
    sweep(company)
  end
end
ring()
return out
`)

// watermarksScript looks at the streams of companies.
//
// ARGV[4...] the companies.
// Returns for each that has a stream: company, id of the oldest waiting entry
// ("" if none), id last delivered.
var watermarksScript = redis.NewScript(common + `
local out = {}
for i = 4, #ARGV do
  local stream = PREFIX .. ARGV[i]
  if redis.call('EXISTS', stream) == 1 then
    local delivered = '0-0'
    for _, info in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
      local g = {}
      for j = 1, #info, 2 do
        g[info[j]] = info[j + 1]
      end
      if g.name == GROUP then
        delivered = g['last-delivered-id']
      end
    end
    local first = redis.call('XRANGE', stream, '(' .. delivered, '+', 'COUNT', 1)[1]
    out[#out + 1], out[#out + 2], out[#out + 3] = ARGV[i], first and first[1] or '', delivered
  end
end
return out
`)

// call is one run of a script on one lane.
type call struct {
	keys []string
	args []any

	carrier   string
	lane      Lane
	streams   string   // prefix of their keys
	companies []string // whose streams it may touch, besides those in the ring
}

func (q *Queue) call(carrier string, lane Lane, args ...any) call {
	keep := "0"
	if lane == Single {
		keep = "1"
	}
	streams := q.streamPrefix(carrier, lane)
	return call{keys: q.keys(carrier, lane), args: append([]any{group, streams, keep}, args...), carrier: carrier, lane: lane, streams: streams}
}

// of names the companies whose streams a call touches.
func (c call) of(companies ...string) call {
	c.companies = companies
	for _, company := range companies {
		c.keys = append(c.keys, c.streams+company)
	}
	return c
}

// run runs a script once for each call, in one pipeline; when the server does
// not know the script (it was restarted), those that failed are run once more
// with its text, and those that met a key of another type once more when it has
// been deleted. extra is what very many items need besides the patience.
func (q *Queue) run(ctx context.Context, script *redis.Script, extra time.Duration, calls ...call) ([]*redis.Cmd, error) {
	answers, err := q.runOnce(ctx, script, extra, calls)
	if err == nil {
		return answers, nil
	}
	var failed []int
	for i, answer := range answers {
		if err := answer.Err(); err != nil && broken(err) && q.repair(ctx, calls[i].carrier, calls[i].lane, calls[i].companies...) {
			failed = append(failed, i)
		}
	}
	if len(failed) == 0 {
		return answers, err
	}
	again := make([]call, len(failed))
	for i, at := range failed {
		again[i] = calls[at]
	}
	second, err := q.runOnce(ctx, script, extra, again)
	if err != nil {
		return answers, err
	}
	for i, at := range failed {
		answers[at] = second[i]
	}
	return answers, failure(answers)
}

func broken(err error) bool { return FaultOf(err) == WrongType }

func (q *Queue) runOnce(ctx context.Context, script *redis.Script, extra time.Duration, calls []call) ([]*redis.Cmd, error) {
	ctx, cancel := context.WithTimeout(ctx, q.patience+extra)
	defer cancel()
	if len(calls) == 1 {
		cmd := script.Run(ctx, q.rdb, calls[0].keys, calls[0].args...)
		return []*redis.Cmd{cmd}, cmd.Err()
	}
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
		if _, err := pipe.Exec(ctx); err == nil {
			return answers, nil
		}
	}
	return answers, failure(answers)
}

// failure is the first error among answers.
func failure(answers []*redis.Cmd) error {
	var failed []error
	for _, answer := range answers {
		if err := answer.Err(); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d runs of a script: %w", len(failed), len(answers), failed[0])
	}
	return nil
}
