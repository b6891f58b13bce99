package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// probeLife is how long the keys of a probe stay when nobody probes any more.
const probeLife = 5 * time.Minute

// canary is a message to nobody that waits on a probe's lane.
type canary struct {
	round sync.Mutex // one probe at a time
	queue *Queue     // under keys of its own
	next  int64
	there int64 // what the last round put there; 0: nothing
}

// Probe sends a message to nobody the way that a carrier's messages go: one call
// pushes it and rings the bell, the next takes and finishes it. So a server
// that answers and cannot be written to, or that loses what it was given, fails
// like one that is away. The keys stand in the carrier's slot of a cluster, and
// belong to this Queue alone.
//
// Probes of one carrier wait for each other. The first call finds out less than
// those that follow.
func (q *Queue) Probe(ctx context.Context, carrier string) error {
	q.mu.Lock()
	c := q.canaries[carrier]
	if c == nil {
		own := New(q.rdb, Options{Prefix: q.prefix + ":probe:" + q.name, Waiting: q.waiting, Patience: q.patience, Log: q.log})
		own.waits = q.waits
		c = &canary{queue: own, next: rand.Int64N(1 << 40)}
		q.canaries[carrier] = c
	}
	q.mu.Unlock()
	c.round.Lock()
	defer c.round.Unlock()
	there := c.there
	c.there = 0
	if there != 0 {
		if err := c.find(ctx, carrier, there); err != nil {
			return err
		}
	}
	c.next++
	if err := c.queue.Push(ctx, []Item{{MessageID: c.next, CompanyID: 1, Carrier: carrier, Lane: Batch}}); err != nil {
		return err
	}
	c.there = c.next
	if err := c.waitBell(ctx, carrier); err != nil {
		return err
	}
	return c.expire(ctx, carrier)
}

// waitBell waits for the bell, which the push has rung.
func (c *canary) waitBell(ctx context.Context, carrier string) error {
	ctx, cancel := context.WithTimeout(ctx, c.queue.patience)
	defer cancel()
	rung, err := c.queue.Wait(ctx, carrier, time.Second, Batch)
	if err == nil && !rung {
		err = &FaultError{Lost, "the bell of " + carrier + " was rung and does not ring"}
	}
	return err
}

// find takes the canary off its lane. What an earlier round lost on the way is
// removed.
func (c *canary) find(ctx context.Context, carrier string, there int64) error {
	entries, err := c.queue.Take(ctx, carrier, Batch, "probe", 100, 0)
	if err != nil {
		return err
	}
	found := false
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
		found = found || e.MessageID == there
	}
	if err := c.queue.Done(ctx, carrier, Batch, ids...); err != nil {
		return err
	}
	if !found {
		return &FaultError{Lost, "what was put on the queue of " + carrier + " is gone"}
	}
	return nil
}

// expire has the server forget the probe's keys some time after this process is
// gone.
func (c *canary) expire(ctx context.Context, carrier string) error {
	ctx, cancel := context.WithTimeout(ctx, c.queue.patience)
	defer cancel()
	pipe := c.queue.rdb.Pipeline()
	for _, key := range append(c.queue.keys(carrier, Batch), c.queue.streamPrefix(carrier, Batch)+"1") {
		pipe.Expire(ctx, key, probeLife)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("having the probe of %s expire: %w", carrier, err)
	}
	return nil
}

// ownName is one that no other queue has.
func ownName() string { return strconv.FormatUint(rand.Uint64(), 36) }
