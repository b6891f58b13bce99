package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const (
	scriptItems   = 500    // items that one script run adds; bounds how long it blocks the server
	pipelineItems = 10_000 // items of one pipeline; bounds what a client buffers
	// itemTime is the server's time for each item of many, besides the patience: ten times what it needs.
	itemTime = 200 * time.Microsecond
	// streamLife is how long a stream stays after its last push or take, for one that no ring names any more.
	streamLife = 7 * 24 * time.Hour
)

// Push puts items on the queue in order, usually in one round trip. On an error some may be on the queue and some not;
// the dispatcher finds those that are not.
func (q *Queue) Push(ctx context.Context, items []Item) error {
	for len(items) > 0 {
		n := min(len(items), pipelineItems)
		if err := q.runAll(ctx, pushScript, time.Duration(n)*itemTime, q.pushCalls(items[:n])); err != nil {
			return fmt.Errorf("pushing %d messages: %w", len(items), err)
		}
		items = items[n:]
	}
	return nil
}

// pushCalls groups items by stream and keeps their order.
func (q *Queue) pushCalls(items []Item) []call {
	type stream struct {
		carrier string
		lane    Lane
		company int64
	}
	var calls []call
	open := make(map[stream]int) // the call that has room
	for i := range items {
		item := &items[i]
		to := stream{item.Carrier, item.Lane, item.CompanyID}
		if to.lane == Single { // it has one stream
			to.company = 0
		}
		at, ok := open[to]
		if !ok {
			at = len(calls)
			open[to] = at
			company := strconv.FormatInt(to.company, 10)
			c := q.call(to.carrier, to.lane, company, int(streamLife.Seconds()))
			c.keys = append(c.keys, q.streamPrefix(to.carrier, to.lane)+company)
			calls = append(calls, c)
		}
		calls[at].args = append(calls[at].args, item.MessageID)
		if len(calls[at].args) >= scriptItems {
			delete(open, to)
		}
	}
	return calls
}
