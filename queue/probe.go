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
	belt  *Belt      // under keys of its own
	next  int64
	there int64 // what the last round put there; 0: nothing
}

// Probe sends a message to nobody the way that a carrier's messages go: it is
// pushed and rung for by one call, taken and done with by the next. So a server
// that answers and cannot be written to, or that loses what it was given, fails
// like one that is away. The keys stand in the carrier's slot of a cluster, and
// are this belt's own.
//
// Probes of one carrier wait for each other. The first call finds out less than
// those that follow.
func (b *Belt) Probe(ctx context.Context, carrier string) error {
	b.mu.Lock()
	c := b.canaries[carrier]
	if c == nil {
		own := New(b.rdb, Options{Prefix: b.prefix + ":probe:" + b.name, Waiting: b.waiting, Patience: b.patience, Log: b.log})
		own.waits = b.waits
		c = &canary{belt: own, next: rand.Int64N(1 << 40)}
		b.canaries[carrier] = c
	}
	b.mu.Unlock()
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
	if err := c.belt.Push(ctx, []Item{{MessageID: c.next, CompanyID: 1, Carrier: carrier, Lane: Batch}}); err != nil {
		return err
	}
	c.there = c.next
	if err := c.hear(ctx, carrier); err != nil {
		return err
	}
	return c.expire(ctx, carrier)
}

// hear waits for the bell, which the push has rung.
func (c *canary) hear(ctx context.Context, carrier string) error {
	ctx, cancel := context.WithTimeout(ctx, c.belt.patience)
	defer cancel()
	rung, err := c.belt.Wait(ctx, carrier, time.Second, Batch)
	if err == nil && !rung {
		err = &FaultError{Lost, "the bell of " + carrier + " was rung and does not ring"}
	}
	return err
}

// find takes the canary off its lane. What an earlier round lost on the way is
// done away with.
func (c *canary) find(ctx context.Context, carrier string, there int64) error {
	entries, err := c.belt.Take(ctx, carrier, Batch, "probe", 100, 0)
	if err != nil {
		return err
	}
	found := false
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
		found = found || e.MessageID == there
	}
	if err := c.belt.Done(ctx, carrier, Batch, ids...); err != nil {
		return err
	}
	if !found {
		return &FaultError{Lost, "what was put on the belt of " + carrier + " is gone"}
	}
	return nil
}

// expire has the server forget the probe's keys some time after this process is
// gone.
func (c *canary) expire(ctx context.Context, carrier string) error {
	ctx, cancel := context.WithTimeout(ctx, c.belt.patience)
	defer cancel()
	pipe := c.belt.rdb.Pipeline()
	for _, key := range append(c.belt.keys(carrier, Batch), c.belt.streamPrefix(carrier, Batch)+"1") {
		pipe.Expire(ctx, key, probeLife)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("having the probe of %s expire: %w", carrier, err)
	}
	return nil
}

// ownName is one that no other belt has.
func ownName() string { return strconv.FormatUint(rand.Uint64(), 36) }
