package intake

import (
	"context"
	"fmt"
	"sync"
	"time"
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

var errBalanceLocked = fmt.Errorf("%w: another transaction has locked the balance that pays", ErrUnavailable)

// aside has the requests of payers whose balance is locked: one group of a payer at a time, which waits for the lock.
type aside struct {
	*core
	commit func(ctx context.Context, group []*request)
	slots  chan struct{}
	all    sync.WaitGroup

	mu      sync.Mutex
	waiting map[int64][]*request // behind the payer's group in progress
}

func newAside(c *core, commit func(ctx context.Context, group []*request)) *aside {
	slots := max(1, min(asideSlots, int(c.pool.Config().MaxConns)/4))
	return &aside{core: c, commit: commit, slots: make(chan struct{}, slots), waiting: make(map[int64][]*request)}
}

// take sets the requests of payers that wait here already aside, or those of all payers, and returns the others.
func (a *aside) take(ctx context.Context, requests []*request, all bool) (others []*request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range requests {
		p := r.payer()
		waiting, known := a.waiting[p]
		switch {
		case !known && !all:
			others = append(others, r)
			continue
		case len(waiting) >= maxRequests:
			r.answer(errBalanceLocked)
			continue
		case !known:
			a.all.Go(func() {
				for group := a.next(p); group != nil; group = a.next(p) {
					a.commit(ctx, group)
				}
			})
		}
		a.waiting[p] = append(waiting, r)
		a.metrics.waited.Inc()
	}
	return others
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
		if n > 0 && (all[0].first != nil || all[n].first != nil) {
			break
		}
		messages += len(all[n].messages)
	}
	a.waiting[p] = all[n:]
	return all[:n]
}
