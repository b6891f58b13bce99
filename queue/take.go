package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Take takes up to max waiting messages off a lane and returns their ids. When there are none it waits at most block (0:
// not at all), then returns none without an error. In the batch lane companies get even shares, in turn.
//
// When ctx ends, Take returns its error and has taken nothing: entries are taken by a short call of their own, whose
// response is always awaited.
func (q *Queue) Take(ctx context.Context, carrier string, lane Lane, max int, block time.Duration) ([]int64, error) {
	if max <= 0 {
		return nil, nil
	}
	deadline := time.Now().Add(block)
	bell := q.bellKey(carrier, lane)
	if _, empty := q.emptied.Load(bell); empty && block > 0 { // the next push rings the bell
		if err := q.wait(ctx, carrier, lane, block); err != nil {
			return nil, err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		messages, more, err := q.take(context.WithoutCancel(ctx), carrier, lane, max)
		if err == nil && !more {
			q.emptied.Store(bell, true)
		} else {
			q.emptied.Delete(bell)
		}
		if err != nil || len(messages) > 0 {
			return messages, err
		}
		if more { // many companies were empty; others are not read yet
			continue
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, nil
		}
		if err := q.wait(ctx, carrier, lane, left); err != nil {
			return nil, err
		}
	}
}

// take runs takeScript once; more means that companies are left in the ring.
func (q *Queue) take(ctx context.Context, carrier string, lane Lane, max int) (messages []int64, more bool, err error) {
	answer, err := q.run(ctx, takeScript, q.call(carrier, lane, max)).Slice()
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
