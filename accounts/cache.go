package accounts

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
)

const (
	entryAge    = 2 * time.Second        // how old an answer from memory may be
	freshGap    = 100 * time.Millisecond // between the starts of two reads past the cache for one token
	readTimeout = 5 * time.Second        // of one read, whoever waits for it
	maxEntries  = 100_000                // some 100 MB at the very most
	maxUnknown  = 10_000                 // ids of no token, some hundred octets each
)

// entry is what one read said about a token.
type entry struct {
	principal  *Principal // nil: no such token
	secretHash [32]byte
	readAt     time.Time // when the read began
	used       atomic.Bool
}

// noteUse is true once in the entry's life, so that a busy token costs the last-use list one call every two seconds.
func (e *entry) noteUse() bool { return !e.used.Load() && e.used.CompareAndSwap(false, true) }

// cache keeps entries for entryAge, those of ids without a token too: asking for one again and again costs
// Postgres no more, and takes no longer, than asking for one that exists. A token created in this process works at
// once, one created elsewhere too unless somebody tried its id before, when it works within entryAge.
type cache struct {
	load   func(ctx context.Context, tokenID int64) (*entry, error)
	age    time.Duration // entryAge
	misses singleflight.Group

	mu      sync.RWMutex
	entries map[int64]*entry
	unknown map[int64]*entry // without a principal; apart, so that guesses push out no customer
	changed time.Time        // the last forgetting: what a read that began before it says is not kept
	epoch   int              // counts them: who asks after one does not share a read that began before it

	freshMu sync.Mutex
	next    map[int64]*freshRead // reads that have not begun, by token
	begun   map[int64]time.Time  // when the last one began, for those begun within freshGap

	hits, reads prometheus.Counter
}

// freshRead is one read past the cache; whoever asks before it begins shares it.
type freshRead struct {
	done  chan struct{}
	entry *entry
	err   error
}

func newCache(load func(context.Context, int64) (*entry, error), metrics prometheus.Registerer) *cache {
	lookups := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "intumwa_token_lookups_total",
		Help: "Look-ups of API tokens, by where the answer came from.",
	}, []string{"source"})
	if metrics != nil {
		metrics.MustRegister(lookups)
	}
	return &cache{
		load:    load,
		age:     entryAge,
		entries: make(map[int64]*entry),
		unknown: make(map[int64]*entry),
		next:    make(map[int64]*freshRead),
		begun:   make(map[int64]time.Time),
		hits:    lookups.WithLabelValues("memory"),
		reads:   lookups.WithLabelValues("database"),
	}
}

// get is the entry of a token, at most entryAge old. Callers that miss together share one read.
func (c *cache) get(ctx context.Context, id int64) (*entry, error) {
	c.mu.RLock()
	e, epoch := c.entries[id], c.epoch
	if e == nil {
		e = c.unknown[id]
	}
	c.mu.RUnlock()
	if e != nil && time.Since(e.readAt) < c.age {
		c.hits.Inc()
		return e, nil
	}
	flight := c.misses.DoChan(strconv.FormatInt(id, 10)+" "+strconv.Itoa(epoch), func() (any, error) { return c.read(ctx, id) })
	select {
	case r := <-flight:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*entry), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for token %d: %w", id, ctx.Err())
	}
}

// fresh is the entry of a token by a read that begins after the call.
func (c *cache) fresh(ctx context.Context, id int64) (*entry, error) {
	c.freshMu.Lock()
	r, joined := c.next[id]
	if !joined {
		r = &freshRead{done: make(chan struct{})}
		c.next[id] = r
	}
	wait := freshGap - time.Since(c.begun[id])
	c.freshMu.Unlock()

	if joined {
		select {
		case <-r.done:
			return r.entry, r.err
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for token %d: %w", id, ctx.Err())
		}
	}
	if wait > 0 { // not cut short by ctx: others may wait for this read
		<-time.After(wait)
	}
	c.begin(id)
	r.entry, r.err = c.read(ctx, id)
	close(r.done)
	return r.entry, r.err
}

// begin closes the read to newcomers.
func (c *cache) begin(id int64) {
	now := time.Now()
	c.freshMu.Lock()
	defer c.freshMu.Unlock()
	delete(c.next, id)
	if len(c.begun) >= 1000 {
		for other, at := range c.begun {
			if now.Sub(at) >= freshGap {
				delete(c.begun, other)
			}
		}
	}
	c.begun[id] = now
}

// read asks Postgres and remembers the answer. It outlives the caller's ctx, because others wait for it.
func (c *cache) read(ctx context.Context, id int64) (*entry, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	began := time.Now()
	c.reads.Inc()
	e, err := c.load(ctx, id)
	if err != nil {
		return nil, err
	}
	e.readAt = began
	c.keep(id, e)
	return e, nil
}

func (c *cache) keep(id int64, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.entries[id]
	if old == nil {
		old = c.unknown[id]
	}
	switch {
	case old != nil && old.readAt.After(e.readAt): // a later read overtook this one
	case !e.readAt.After(c.changed): // it may have missed what was changed meanwhile
	case e.principal == nil:
		delete(c.entries, id)
		if len(c.unknown) >= maxUnknown {
			c.evictUnknown()
		}
		c.unknown[id] = e
	default:
		delete(c.unknown, id)
		if c.entries[id] == nil && len(c.entries) >= maxEntries {
			c.evict()
		}
		c.entries[id] = e
	}
}

// evict makes room: what is too old goes, and a tenth at random when nothing is.
func (c *cache) evict() {
	for id, e := range c.entries {
		if time.Since(e.readAt) >= c.age {
			delete(c.entries, id)
		}
	}
	for id := range c.entries {
		if len(c.entries) <= maxEntries*9/10 {
			return
		}
		delete(c.entries, id)
	}
}

// evictUnknown makes room: what is too old goes, and a tenth at random when nothing is.
func (c *cache) evictUnknown() {
	for id, e := range c.unknown {
		if time.Since(e.readAt) >= c.age {
			delete(c.unknown, id)
		}
	}
	for id := range c.unknown {
		if len(c.unknown) <= maxUnknown*9/10 {
			return
		}
		delete(c.unknown, id)
	}
}

// peek is a token's entry, however old; nil when there is none. It asks nobody.
func (c *cache) peek(id int64) *entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[id]
}

// forget drops one token's entry.
func (c *cache) forget(id int64) {
	c.forgetWhere(func(token int64, _ *Principal) bool { return token == id })
}

// forgetAll drops every entry, after a change that concerns an unknown number of tokens.
func (c *cache) forgetAll() { c.forgetWhere(nil) }

// forgetWhere drops the entries that match, or all of them when match is nil, and what reads under way are about to
// say.
func (c *cache) forgetWhere(match func(tokenID int64, p *Principal) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = time.Now()
	c.epoch++
	clear(c.unknown) // whose they are nobody knows
	if match == nil {
		clear(c.entries)
		return
	}
	for id, e := range c.entries {
		if match(id, e.principal) {
			delete(c.entries, id)
		}
	}
}
