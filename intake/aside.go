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

// Another transaction may keep a company's balance locked for long: an operator's
// console, a session that hangs. The company's requests then wait aside, so that
// they delay nobody else's.
const (
	// groupLockWait is how long a group waits for any one lock. It bounds the delay of
	// everybody when a balance is locked; it is several times what another process needs
	// to commit a group.
	groupLockWait = 100 * time.Millisecond
	// asideLife is how long a request waits aside before it is refused with 503.
	asideLife = 5 * time.Second
	// asideSlots is how many groups aside may have a connection at once; a pool of fewer
	// than sixteen gives a quarter of its connections.
	asideSlots = 4
)

// payer is the company whose balance a request must lock; 0: none.
func (r *request) payer() int64 {
	if r.kind == kindCode || r.kind == kindSandbox {
		return 0
	}
	return r.company
}

// aside commits the requests of payers whose balance is locked: one group of a payer at a
// time, which waits for the lock.
type aside struct {
	committer *committer
	slots     chan struct{}
	all       sync.WaitGroup

	mu      sync.Mutex
	waiting map[int64][]*request // behind the payer's group that is being committed
}

func newAside(c *committer) *aside {
	slots := asideSlots
	if c.in.pool != nil {
		slots = max(1, min(slots, int(c.in.pool.Config().MaxConns)/4))
	}
	return &aside{committer: c, slots: make(chan struct{}, slots), waiting: make(map[int64][]*request)}
}

// take lets requests wait aside and returns the others: those of payers that do not wait
// there, unless all are to.
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
	respond(full, errHeld)
	return others
}

// run commits a payer's requests until none is left.
func (a *aside) run(ctx context.Context, p int64) {
	for group := a.next(p); group != nil; group = a.next(p) {
		a.committer.finish(ctx, group, a.try(ctx, group))
	}
}

// next returns the payer's next group; with none left the payer waits aside no longer.
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

var errHeld = fmt.Errorf("%w: another transaction has locked the balance that pays", ErrUnavailable)

// try commits a group as soon as it has a connection and its locks, until the life of
// its first request is over.
func (a *aside) try(ctx context.Context, group []*request) error {
	until := group[0].came.Add(asideLife)
	slot := time.NewTimer(time.Until(until))
	defer slot.Stop()
	select {
	case a.slots <- struct{}{}:
	case <-slot.C:
		return errHeld
	}
	defer func() { <-a.slots }()
	err := a.committer.try(ctx, group, max(groupLockWait, time.Until(until)))
	if postgres.Locked(err) && !errors.Is(err, ErrKeyInUse) {
		a.committer.in.opts.Log.Warn("requests refused: another transaction has locked the balance that pays", "event", "balance_locked",
			"company_id", group[0].payer(), "requests", len(group))
		return errHeld
	}
	return err
}

// setAside has requests wait aside that would have had to wait for a lock for too long. Those of several payers are tried
// in halves first, briefly, so that those whose balance is not locked are committed.
func (c *committer) setAside(ctx context.Context, requests []*request) {
	payer := requests[0].payer()
	if !slices.ContainsFunc(requests, func(r *request) bool { return r.payer() != payer }) {
		c.aside.take(ctx, requests, true)
		return
	}
	half := len(requests) / 2
	for _, some := range [][]*request{requests[:half], requests[half:]} {
		if some = c.aside.take(ctx, some, false); len(some) > 0 { // a balance that was found locked is not waited for again
			c.process(ctx, some, groupLockWait/10)
		}
	}
}
