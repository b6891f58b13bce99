package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"intumwa/internal/postgres"
)

// Another transaction may keep a company's balance locked for long: an operator's console, a session that hangs. That
// company's requests then wait aside and delay no others.
const (
	// groupLockWait is how long a group waits for any one lock. It bounds the delay of all requests when a balance is
	// locked, and is several times what another process needs to commit a group.
	groupLockWait = 100 * time.Millisecond
	// asideLife is how long a request waits aside until it is refused with 503.
	asideLife = 5 * time.Second
	// asideSlots is how many groups aside may have a connection at once: at most, a quarter of the pool.
	asideSlots = 4
)

// payer is the company whose balance a request must lock; 0: none.
func (r *request) payer() int64 {
	if r.kind == kindCode || r.kind == kindSandbox {
		return 0
	}
	return r.company
}

// aside commits the requests of payers whose balance is locked: one group of a payer at a time, which waits for the lock.
type aside struct {
	committer *committer
	slots     chan struct{}
	all       sync.WaitGroup

	mu      sync.Mutex
	waiting map[int64][]*request // behind the payer's group in progress
}

func newAside(c *committer) *aside {
	slots := asideSlots
	if c.in.pool != nil {
		slots = max(1, min(slots, int(c.in.pool.Config().MaxConns)/4))
	}
	return &aside{committer: c, slots: make(chan struct{}, slots), waiting: make(map[int64][]*request)}
}

// take sets the requests of payers that wait here already aside, or those of all payers, and returns the others.
func (a *aside) take(ctx context.Context, requests []*request, all bool) (others []*request) {
	var full []*request
	a.mu.Lock()
	for _, r := range requests {
		p := r.payer()
		waiting, known := a.waiting[p]
		switch {
		case !known && !all:
			others = append(others, r)
			continue
		case len(waiting) >= maxRequests:
			full = append(full, r)
			continue
		case !known:
			a.all.Go(func() { a.run(ctx, p) })
		}
		a.waiting[p] = append(waiting, r)
		a.committer.in.metrics.aside.Inc()
	}
	a.mu.Unlock()
	respond(full, errBalanceLocked)
	return others
}

// run commits a payer's requests until none is left.
func (a *aside) run(ctx context.Context, p int64) {
	for group := a.next(p); group != nil; group = a.next(p) {
		tried, err := a.try(ctx, group)
		a.committer.finish(ctx, tried, err)
	}
}

// next returns the payer's next group; without one, the payer waits aside no longer.
func (a *aside) next(p int64) []*request {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.waiting[p]
	if len(all) == 0 {
		delete(a.waiting, p)
		return nil
	}
	n, messages := 0, 0
	for ; n < len(all) && messages < maxMessages; n++ {
		messages += len(all[n].messages)
	}
	a.waiting[p] = all[n:]
	return all[:n]
}

var errBalanceLocked = fmt.Errorf("%w: another transaction has locked the balance that pays", ErrUnavailable)

// try commits a group when it has a connection and its locks, for at most the life of its first request.
func (a *aside) try(ctx context.Context, group []*request) (tried []*request, err error) {
	patience := func() time.Duration { return max(groupLockWait, asideLife-time.Since(group[0].came)) }
	slot := time.NewTimer(patience())
	defer slot.Stop()
	select {
	case a.slots <- struct{}{}:
	case <-slot.C:
		return group, errBalanceLocked
	}
	defer func() { <-a.slots }()
	tried, err = a.committer.try(ctx, group, patience())
	if postgres.Locked(err) && !errors.Is(err, ErrKeyInUse) {
		a.committer.in.opts.Log.Warn("requests refused: another transaction has locked the balance that pays", "event", "balance_locked",
			"company_id", group[0].payer(), "requests", len(tried))
		return tried, errBalanceLocked
	}
	return tried, err
}

// setAside sets requests aside that met a lock for longer than a group may wait. If they have several payers, it tries
// halves of them first, briefly, to commit those whose balance is free.
func (c *committer) setAside(ctx context.Context, requests []*request) {
	payer := requests[0].payer()
	if !slices.ContainsFunc(requests, func(r *request) bool { return r.payer() != payer }) {
		c.aside.take(ctx, requests, true)
		return
	}
	half := len(requests) / 2
	for _, some := range [][]*request{requests[:half], requests[half:]} {
		if some = c.aside.take(ctx, some, false); len(some) > 0 { // a balance that was found locked delays no second attempt
			c.process(ctx, some, groupLockWait/10)
		}
	}
}
