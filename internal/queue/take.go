package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// waitSlice is the length of one wait for the bell, and the delay at which a wait notices the end of its context.
const waitSlice = 200 * time.Millisecond

// Take takes up to max waiting messages off a lane and returns their ids. When there are none it waits for about block
// (0: not at all), then returns none without an error. In the batch lane companies get even shares, in turn.
//
// When ctx ends, Take returns within waitSlice: its error, or messages that it took meanwhile. The response of a call
// that takes is always awaited.
func (q *Queue) Take(ctx context.Context, carrier string, lane Lane, max int, block time.Duration) ([]int64, error) {
	if max <= 0 {
		return nil, nil
	}
	bell, end := q.bellKey(carrier, lane), time.Now().Add(block)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		_, empty := q.emptied.Load(bell) // the next push rings the bell
		messages, more, err := q.take(context.WithoutCancel(ctx), carrier, lane, max, empty && block > 0)
		if err == nil && !more {
			q.emptied.Store(bell, true)
		} else {
			q.emptied.Delete(bell)
		}
		// With more, many companies were empty; others are not read yet.
		if err != nil || len(messages) > 0 || !more && !time.Now().Before(end) {
			return messages, err
		}
	}
}

// take runs takeScript once, after a wait for the bell if it waits; more means that companies are left in the ring.
func (q *Queue) take(ctx context.Context, carrier string, lane Lane, max int, waits bool) (messages []int64, more bool,
	err error) {
	run := q.run
	if waits {
		run = q.await
	}
	answer, err := run(ctx, takeScript, q.call(carrier, lane, max)).Slice()
	if err != nil {
		return nil, false, fmt.Errorf("taking from %s %s: %w", carrier, lane, err)
	}
	if len(answer) == 0 {
		return nil, false, &FaultError{Garbled, "taking from " + carrier + ": an empty answer"}
	}
	companies, ok := answer[0].(int64)
	if !ok {
		return nil, false, &FaultError{Garbled, "taking from " + carrier + ": an answer without a count"}
	}
	messages = make([]int64, len(answer)-1)
	for i, id := range answer[1:] {
		text, _ := id.(string)
		if messages[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, false, fmt.Errorf("reading what was taken from %s %s: %w", carrier, lane, err)
		}
	}
	return messages, companies > 0, nil
}

// await waits for the bell, at most for a slice, and then runs a script. The server gets both in one pipeline, and
// starts the script when the wait is over.
func (q *Queue) await(ctx context.Context, script *redis.Script, c call) *redis.Cmd {
	limited, cancel := context.WithTimeout(ctx, waitSlice+q.patience)
	defer cancel()
	pipe := q.waiting.Pipeline()
	bell := pipe.Do(limited, "blpop", c.keys[1], waitSlice.Seconds()) // BLPop rounds up to whole seconds
	answer := script.EvalSha(limited, pipe, c.keys, c.args...)
	_, _ = pipe.Exec(limited) // the commands have the error
	switch err := bell.Err(); {
	case err != nil && !errors.Is(err, redis.Nil): // the next wait would not wait
		answer.SetErr(err)
	case redis.HasErrorPrefix(answer.Err(), "NOSCRIPT"):
		return q.run(ctx, script, c)
	}
	return answer
}

// Oldest returns how long the oldest entry of a lane has waited; 0 for an empty lane. A message that was pushed earlier
// and is not taken is lost.
func (q *Queue) Oldest(ctx context.Context, carrier string, lane Lane) (time.Duration, error) {
	ms, err := q.run(ctx, oldestScript, q.call(carrier, lane)).Int64()
	if err != nil {
		return 0, fmt.Errorf("reading how long entries have waited at %s %s: %w", carrier, lane, err)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// emptiedFor is how long after a lane was emptied it is not emptied again: several processes find the same fault.
const emptiedFor = 5 * time.Second

// Empty deletes a lane, whatever its keys contain. It fails where the lane cannot be written to. It does nothing if a
// process emptied the lane within the last seconds.
func (q *Queue) Empty(ctx context.Context, carrier string, lane Lane) error {
	if _, err := q.run(ctx, emptyScript, q.call(carrier, lane, emptiedFor.Milliseconds())).Int64(); err != nil {
		return fmt.Errorf("emptying %s %s: %w", carrier, lane, err)
	}
	return nil
}
