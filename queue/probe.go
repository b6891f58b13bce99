package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// probeLife is how long a probe's key stays after the last probe.
const probeLife = 5 * time.Minute

// Probe writes to a key of this Queue alone. It returns an error when it cannot, or when the previous call's text is
// gone: a server that responds but refuses or loses writes counts as failed.
func (q *Queue) Probe(ctx context.Context) error {
	q.probing.Lock()
	defer q.probing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	before, next := q.probed, rand.Text()
	q.probed = ""
	if before != "" {
		found, err := q.rdb.Get(ctx, q.probe).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("reading the probe: %w", err)
		}
		if found != before {
			return &FaultError{Lost, "what was written to redis is gone"}
		}
	}
	if err := q.rdb.Set(ctx, q.probe, next, probeLife).Err(); err != nil {
		return fmt.Errorf("writing the probe: %w", err)
	}
	q.probed = next
	return nil
}
