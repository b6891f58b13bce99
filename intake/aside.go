package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/messages"
)

// Another transaction may keep a company's balance locked for long: an operator's
// console, a session that hangs. The company's requests then wait aside, so that
// they delay nobody else's.
const (
	// groupLockWait is how long a group waits for any one lock. It bounds what
	// everybody pays, once, for finding out that somebody's balance is held; it
	// is several times what another process needs to commit a group.
	groupLockWait = 100 * time.Millisecond
	// asideLockWait is how long those who were set aside wait for a lock at a
	// time, holding a connection, and asidePause how long they rest between.
	asideLockWait = time.Second
	asidePause    = 50 * time.Millisecond
	// asideLife is how long a request waits aside before it is refused with 503.
	asideLife = 5 * time.Second
	// asideSlots is how many payers' requests may hold a connection at once; a
	// pool of fewer than sixteen gives a quarter of its connections.
	asideSlots = 4
	// asideMessages bounds what waits aside for one payer.
	asideMessages = 4 * maxMessages
	// asideMemory is how long a payer whose balance could not be locked is
	// remembered after its last request was refused.
	asideMemory = time.Minute
)

// payer is whose row a request must lock: a company's balance or, for test
// messages, an account's pool. The zero payer is the gateway, which locks none.
type payer struct{ company, user int64 }

func (r *request) payer() payer {
	switch r.kind {
	case kindCode, kindSandbox:
		return payer{}
	case kindTest:
		return payer{user: r.user}
	default:
		return payer{company: r.company}
	}
}

// aside holds the requests of payers whose row another transaction has locked,
// each payer's in a queue of its own that is committed in groups like the
// committer's.
type aside struct {
	committer *committer
	slots     chan struct{}
	all       sync.WaitGroup

	mu     sync.Mutex
	queues map[payer]*asideQueue
}

// asideQueue is one payer's. Its fields are guarded by aside.mu.
type asideQueue struct {
	waiting  []*request
	messages int       // of those waiting
	running  bool      // a goroutine commits it
	failed   time.Time // when its lock could last not be taken; zero: it could
}

func newAside(c *committer) *aside {
	slots := asideSlots
	if c.in.pool != nil {
		slots = max(1, min(slots, int(c.in.pool.Config().MaxConns)/4))
	}
	return &aside{committer: c, slots: make(chan struct{}, slots), queues: make(map[payer]*asideQueue)}
}

// takeAside adds the requests of payers that already wait aside to their queues
// and returns the others.
func (a *aside) takeAside(ctx context.Context, requests []*request) []*request {
	a.mu.Lock()
	for p, q := range a.queues {
		if !q.running && time.Since(q.failed) > asideMemory {
			delete(a.queues, p)
		}
	}
	if len(a.queues) == 0 {
		a.mu.Unlock()
		return requests
	}
	var away []*request
	stay := requests[:0:0]
	for _, r := range requests {
		if a.queues[r.payer()] != nil {
			away = append(away, r)
		} else {
			stay = append(stay, r)
		}
	}
	a.mu.Unlock()
	a.add(ctx, away)
	return stay
}

// add lets requests wait aside. What a full queue has no room for is refused at
// once.
func (a *aside) add(ctx context.Context, requests []*request) {
	var full []*request
	a.mu.Lock()
	for _, r := range requests {
		p := r.payer()
		q := a.queues[p]
		if q == nil {
			q = &asideQueue{}
			a.queues[p] = q
		}
		if len(q.waiting) >= maxRequests || q.messages+len(r.messages) > asideMessages {
			full = append(full, r)
			continue
		}
		r.until = time.Now().Add(asideLife)
		q.waiting, q.messages = append(q.waiting, r), q.messages+len(r.messages)
		a.committer.in.metrics.aside.Inc()
		if !q.running {
			q.running = true
			a.all.Go(func() { a.run(ctx, p, q) })
		}
	}
	a.mu.Unlock()
	respond(full, errHeld)
}

// take refuses the requests whose time is over and returns a group of the others;
// with none left it ends the queue's run. A payer whose lock could be taken goes
// back to the committer.
func (a *aside) take(p payer, q *asideQueue) []*request {
	a.mu.Lock()
	now := time.Now()
	var late, group []*request
	n := 0
	for len(q.waiting) > 0 && len(group) < maxRequests && n < maxMessages {
		r := q.waiting[0]
		q.waiting, q.messages = q.waiting[1:], q.messages-len(r.messages)
		if now.After(r.until) {
			late = append(late, r)
			continue
		}
		group, n = append(group, r), n+len(r.messages)
	}
	if len(group) == 0 {
		q.waiting, q.running = nil, false
		if q.failed.IsZero() {
			delete(a.queues, p)
		}
	}
	a.mu.Unlock()
	respond(late, errHeld)
	return group
}

var errHeld = fmt.Errorf("%w: another transaction has locked the balance or the test pool that pays", ErrUnavailable)

// putBack puts a group back at the head of its queue.
func (a *aside) putBack(q *asideQueue, group []*request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q.failed = time.Now()
	q.waiting = slices.Concat(group, q.waiting)
	for _, r := range group {
		q.messages += len(r.messages)
	}
}

// run commits a queue's requests until none is left. When the process ends, each
// is tried once more.
func (a *aside) run(ctx context.Context, p payer, q *asideQueue) {
	logged := false
	for {
		group := a.take(p, q)
		if group == nil {
			return
		}
		slot := time.NewTimer(time.Until(group[0].until))
		select {
		case a.slots <- struct{}{}:
			slot.Stop()
		case <-slot.C:
			a.putBack(q, group)
			continue
		}
		err := a.committer.try(ctx, group, asideLockWait)
		<-a.slots
		held := postgres.Locked(err) && !errors.Is(err, ErrKeyInUse)
		switch {
		case held && ctx.Err() != nil:
			respond(group, errHeld)
		case held:
			if !logged {
				logged = true
				a.committer.in.opts.Log.Warn("balance or test pool is locked by another transaction; its requests wait",
					"company_id", p.company, "user_id", p.user, "requests", len(group))
			}
			a.putBack(q, group)
			time.Sleep(asidePause)
		default:
			a.mu.Lock()
			q.failed = time.Time{}
			a.mu.Unlock()
			if logged {
				logged = false
				a.committer.in.opts.Log.Info("balance or test pool is no longer locked", "company_id", p.company, "user_id", p.user)
			}
			a.committer.finish(ctx, group, err, a.alone)
		}
	}
}

// alone commits a request that could not be committed with its group.
func (a *aside) alone(ctx context.Context, requests []*request) {
	err := a.committer.try(ctx, requests, asideLockWait)
	if postgres.Locked(err) && !errors.Is(err, ErrKeyInUse) {
		err = errHeld
	}
	a.committer.finish(ctx, requests, err, a.alone)
}

// setAside splits a group that would have had to wait for a lock longer than
// groupLockWait: requests whose balance or pool is locked wait aside, the others
// are committed at once. Where none is locked, the lock was of something that one
// request needs (a key that another process works on, a concatenation
// reference): requests that need such a thing wait aside.
func (c *committer) setAside(ctx context.Context, requests []*request) {
	suspect, err := c.held(requests)
	if err != nil {
		respond(requests, fmt.Errorf("%w: %w", ErrUnavailable, err))
		return
	}
	var away, stay []*request
	for _, r := range requests {
		if suspect(r) {
			away = append(away, r)
		} else {
			stay = append(stay, r)
		}
	}
	if len(away) == 0 {
		away, stay = stay, nil
	}
	c.aside.add(ctx, away)
	if len(stay) > 0 {
		c.process(ctx, stay)
	}
}

// held finds out which requests a group had to wait for.
func (c *committer) held(requests []*request) (suspect func(*request) bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	var companies, users []int64
	for _, r := range requests {
		p := r.payer()
		companies, users = append(companies, p.company), append(users, p.user)
	}
	tx, err := c.in.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it wrote nothing
	heldCompanies, heldUsers, err := billing.Held(ctx, tx, companies, users)
	if err != nil {
		return nil, err
	}
	if len(heldCompanies)+len(heldUsers) > 0 {
		return func(r *request) bool { p := r.payer(); return heldCompanies[p.company] || heldUsers[p.user] }, nil
	}
	return func(r *request) bool {
		return r.key != nil || slices.ContainsFunc(r.messages, func(m *messages.Message) bool { return m.Segments > 1 })
	}, nil
}
