package keys

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"intumwa/accounts"
)

const (
	maxEntryAge = 2 * time.Second // an older entry is read again
	readTimeout = 5 * time.Second // of one read, shared or not
	maxEntries  = 100_000         // at most about 100 MB
	maxUnknown  = 10_000          // ids without a token, a few hundred bytes each
)

// entry is the result of reading a token.
type entry struct {
	principal  *accounts.Principal // nil: no such token
	secretHash [32]byte
	readAt     time.Time // when the read began
	used       atomic.Bool
}

// firstUse returns true for the entry's first call only: a busy token is added to lastUse once in two seconds.
func (e *entry) firstUse() bool { return !e.used.Load() && e.used.CompareAndSwap(false, true) }

// cache keeps entries for maxEntryAge, also of ids without a token: repeated requests with such an id cost Postgres no
// more, and take no longer, than requests with a valid token. A new token works at once, or within maxEntryAge if
// another process created it and its id was tried before.
type cache struct {
	load   func(ctx context.Context, tokenID int64) (*entry, error)
	age    time.Duration // maxEntryAge
	misses singleflight.Group

	mu      sync.RWMutex
	entries map[int64]*entry
	unknown map[int64]*entry // entries without a principal; kept apart, so that guessed ids do not evict customers
	changed time.Time        // time of the last forget: results of reads that began before it are not stored
	epoch   int              // counts forgets: a call after one does not share a read that began before it

	hits, reads prometheus.Counter
}

func newCache(load func(context.Context, int64) (*entry, error), metrics prometheus.Registerer) *cache {
	lookups := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "intumwa_token_lookups_total",
		Help: "Look-ups of API keys.",
	}, []string{"source"})
	if metrics != nil {
		metrics.MustRegister(lookups)
	}
	return &cache{
		load:    load,
		age:     maxEntryAge,
		entries: make(map[int64]*entry),
		unknown: make(map[int64]*entry),
		hits:    lookups.WithLabelValues("memory"),
		reads:   lookups.WithLabelValues("database"),
	}
}

// get returns the entry of a token, at most maxEntryAge old. Concurrent misses share one read.
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
	flight := c.misses.DoChan(strconv.FormatInt(id, 10)+" "+strconv.Itoa(epoch),
		func() (any, error) { return c.read(ctx, id) })
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

// read reads a token from Postgres and stores the entry. It continues when the caller's ctx ends: others may wait for
// it.
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
	c.store(id, e)
	return e, nil
}

func (c *cache) store(id int64, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.entries[id]
	if old == nil {
		old = c.unknown[id]
	}
	switch {
	case old != nil && old.readAt.After(e.readAt): // a later read was stored first
	case !e.readAt.After(c.changed): // the row may have changed during the read
	case e.principal == nil:
		delete(c.entries, id)
		c.evict(c.unknown, maxUnknown)
		c.unknown[id] = e
	default:
		delete(c.unknown, id)
		c.evict(c.entries, maxEntries)
		c.entries[id] = e
	}
}

// evict frees a place when entries has most of them: it removes those that are too old, or else a random tenth.
func (c *cache) evict(entries map[int64]*entry, most int) {
	if len(entries) < most {
		return
	}
	for id, e := range entries {
		if time.Since(e.readAt) >= c.age {
			delete(entries, id)
		}
	}
	for id := range entries {
		if len(entries) <= most*9/10 {
			return
		}
		delete(entries, id)
	}
}

// peek returns a token's entry, however old, without reading Postgres; nil when there is none.
func (c *cache) peek(id int64) *entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[id]
}

// forget drops one token's entry.
func (c *cache) forget(id int64) {
	c.forgetWhere(func(token int64, _ *accounts.Principal) bool { return token == id })
}

// forgetAll drops every entry, for a change that may concern any token.
func (c *cache) forgetAll() { c.forgetWhere(nil) }

// forgetWhere drops the entries that match, or all when match is nil. Results of reads in progress are not stored.
func (c *cache) forgetWhere(match func(tokenID int64, p *accounts.Principal) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = time.Now()
	c.epoch++
	clear(c.unknown) // an unknown id may now be a token
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

// Forget drops every entry, after a change that may concern any key.
func (a *Holders) Forget() { a.cache.forgetAll() }

// ForgetUser drops a user's cached tokens; key is the user's id, and any other text drops all tokens. It is the
// callback of account notices.
func (a *Holders) ForgetUser(key string) {
	id, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		a.cache.forgetAll()
		return
	}
	a.cache.forgetWhere(func(_ int64, p *accounts.Principal) bool { return p.UserID == id })
}

// ForgetCompany drops the cached tokens of a company's people; key is the company's id.
func (a *Holders) ForgetCompany(key string) {
	id, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		a.cache.forgetAll()
		return
	}
	a.cache.forgetWhere(func(_ int64, p *accounts.Principal) bool { return p.Company != nil && p.Company.ID == id })
}
