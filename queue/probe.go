package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// probeLife is how long a probe's key stays after the last probe.
const probeLife = 5 * time.Minute

// probe is a key of this Queue alone, and the text that the last Probe wrote there.
type probe struct {
	mu    sync.Mutex
	name  string
	wrote string // "": nothing
}

// Probe writes to a key of this Queue alone. It returns an error when it cannot, or when the previous call's text is
// gone: a server that responds but refuses or loses writes counts as failed.
func (q *Queue) Probe(ctx context.Context) error {
	p := &q.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	before, next := p.wrote, word()
	p.wrote = ""
	if before != "" {
		found, err := q.rdb.Get(ctx, p.name).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("reading the probe: %w", err)
		}
		if found != before {
			return &FaultError{Lost, "what was written to redis is gone"}
		}
	}
	if err := q.rdb.Set(ctx, p.name, next, probeLife).Err(); err != nil {
		return fmt.Errorf("writing the probe: %w", err)
	}
	p.wrote = next
	return nil
}

// word returns a random word.
func word() string { return fmt.Sprintf("%016x", rand.Uint64()) }
