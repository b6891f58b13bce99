package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// waitSlice is the length of one wait for the bell, and the delay at which a wait notices the end of its context.
const waitSlice = 200 * time.Millisecond

// wait blocks until a lane may have messages, at most for block. When ctx ends it returns its error within waitSlice.
func (q *Queue) wait(ctx context.Context, carrier string, lane Lane, block time.Duration) error {
	bell := q.bellKey(carrier, lane)
	for end := time.Now().Add(block); ; {
		rung, err := q.listen(context.WithoutCancel(ctx), bell)
		if err != nil {
			return fmt.Errorf("waiting at %s %s: %w", carrier, lane, err)
		}
		if rung || !time.Now().Before(end) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// listen waits one slice for the bell and returns whether it rang.
func (q *Queue) listen(ctx context.Context, bell string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, waitSlice+q.patience)
	defer cancel()
	answer := redis.NewStringSliceCmd(ctx, "blpop", bell, waitSlice.Seconds()) // BLPop rounds up to whole seconds
	_ = q.waiting.Process(ctx, answer)
	rung, err := answer.Result()
	switch {
	case errors.Is(err, redis.Nil):
		return false, nil
	case err != nil:
		return false, err
	case len(rung) == 0:
		return false, &FaultError{Garbled, "an answer without a key"}
	}
	return true, nil
}
