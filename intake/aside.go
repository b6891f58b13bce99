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

// Somebody may hold a company's balance for long: an operator's console, a
// transaction that hangs. Its requests then wait aside, so that they hold up
// nobody else's.
const (
	// deskPatience is how long a group waits for any one lock. It bounds what
	// everybody pays, once, for finding out that somebody's balance is held; it
	// is several times what another process needs to commit a group.
	deskPatience = 100 * time.Millisecond
	// asidePatience is how long those who were set aside wait for a lock at a
	// time, holding a connection, and asidePause how long they rest between.
	asidePatience = time.Second
	asidePause    = 50 * time.Millisecond
	// asideLife is how long a request waits aside before it is refused with 503.
	asideLife = 5 * time.Second
	// asideSeats is how many payers' requests may hold a connection at once; a
	// pool of fewer than sixteen gives a quarter of its connections.
	asideSeats = 4
	// asideMessages bounds what waits aside for one payer.
	asideMessages = 4 * maxMessages
	// asideMemory is how long a payer whose balance was not to be had is
	// remembered after its last request was refused.
	asideMemory = time.Minute
)

// payer is whose row an order has to have for itself: a company's balance or,
// for test messages, an account's pool. The zero payer is the gateway.
type payer struct{ company, user int64 }

func (o *order) payer() payer {
	switch o.kind {
	case kindCode, kindSandbox:
		return payer{}
	case kindTest:
		return payer{user: o.user}
	default:
		return payer{company: o.company}
	}
}

// aside is where the orders of payers wait whose row somebody else holds, each
// payer's in a queue of its own that is committed in groups as the desk's is.
type aside struct {
	desk  *desk
	seats chan struct{}
	all   sync.WaitGroup

	mu     sync.Mutex
	queues map[payer]*asideQueue
}

// asideQueue is one payer's. Its fields are guarded by aside.mu.
type asideQueue struct {
	waiting  []*order
	messages int       // of those waiting
	running  bool      // somebody is at it
	failed   time.Time // when its lock was last not to be had; zero: it was
}

func newAside(d *desk) *aside {
	seats := asideSeats
	if d.in.pool != nil {
		seats = max(1, min(seats, int(d.in.pool.Config().MaxConns)/4))
	}
	return &aside{desk: d, seats: make(chan struct{}, seats), queues: make(map[payer]*asideQueue)}
}

// divert sends the orders of payers that wait aside there and answers the
// others.
func (a *aside) divert(ctx context.Context, orders []*order) []*order {
	a.mu.Lock()
	for p, q := range a.queues {
		if !q.running && time.Since(q.failed) > asideMemory {
			delete(a.queues, p)
		}
	}
	if len(a.queues) == 0 {
		a.mu.Unlock()
		return orders
	}
	var away []*order
	stay := orders[:0:0]
	for _, o := range orders {
		if a.queues[o.payer()] != nil {
			away = append(away, o)
		} else {
			stay = append(stay, o)
		}
	}
	a.mu.Unlock()
	a.add(ctx, away)
	return stay
}

// add lets orders wait aside. One too many is refused at once.
func (a *aside) add(ctx context.Context, orders []*order) {
	var full []*order
	a.mu.Lock()
	for _, o := range orders {
		p := o.payer()
		q := a.queues[p]
		if q == nil {
			q = &asideQueue{}
			a.queues[p] = q
		}
		if len(q.waiting) >= maxOrders || q.messages+len(o.messages) > asideMessages {
			full = append(full, o)
			continue
		}
		o.until = time.Now().Add(asideLife)
		q.waiting, q.messages = append(q.waiting, o), q.messages+len(o.messages)
		a.desk.in.metrics.aside.Inc()
		if !q.running {
			q.running = true
			a.all.Go(func() { a.run(ctx, p, q) })
		}
	}
	a.mu.Unlock()
	answer(full, errHeld)
}

// take answers the orders whose time is over and takes a group of the others;
// with none left it ends the queue's run. A payer whose lock was to be had
// returns to the desk.
func (a *aside) take(p payer, q *asideQueue) []*order {
	a.mu.Lock()
	now := time.Now()
	var late, group []*order
	n := 0
	for len(q.waiting) > 0 && len(group) < maxOrders && n < maxMessages {
		o := q.waiting[0]
		q.waiting, q.messages = q.waiting[1:], q.messages-len(o.messages)
		if now.After(o.until) {
			late = append(late, o)
			continue
		}
		group, n = append(group, o), n+len(o.messages)
	}
	if len(group) == 0 {
		q.waiting, q.running = nil, false
		if q.failed.IsZero() {
			delete(a.queues, p)
		}
	}
	a.mu.Unlock()
	answer(late, errHeld)
	return group
}

var errHeld = fmt.Errorf("%w: somebody else holds the balance or the test pool that pays", ErrUnavailable)

// again puts a group back at the head of its queue.
func (a *aside) again(q *asideQueue, group []*order) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q.failed = time.Now()
	q.waiting = slices.Concat(group, q.waiting)
	for _, o := range group {
		q.messages += len(o.messages)
	}
}

// run commits a queue's orders until none is left. When the process ends, each
// gets one more try.
func (a *aside) run(ctx context.Context, p payer, q *asideQueue) {
	told := false
	for {
		group := a.take(p, q)
		if group == nil {
			return
		}
		seat := time.NewTimer(time.Until(group[0].until))
		select {
		case a.seats <- struct{}{}:
			seat.Stop()
		case <-seat.C:
			a.again(q, group)
			continue
		}
		err := a.desk.try(ctx, group, asidePatience)
		<-a.seats
		held := postgres.Locked(err) && !errors.Is(err, ErrKeyInUse)
		switch {
		case held && ctx.Err() != nil:
			answer(group, errHeld)
		case held:
			if !told {
				told = true
				a.desk.in.opts.Log.Warn("somebody else holds a balance or a test pool; its requests wait aside",
					"company_id", p.company, "user_id", p.user, "requests", len(group))
			}
			a.again(q, group)
			time.Sleep(asidePause)
		default:
			a.mu.Lock()
			q.failed = time.Time{}
			a.mu.Unlock()
			if told {
				told = false
				a.desk.in.opts.Log.Info("the balance or test pool is free again", "company_id", p.company, "user_id", p.user)
			}
			a.desk.finish(ctx, group, err, a.alone)
		}
	}
}

// alone settles an order that its group could not be settled with.
func (a *aside) alone(ctx context.Context, orders []*order) {
	err := a.desk.try(ctx, orders, asidePatience)
	if postgres.Locked(err) && !errors.Is(err, ErrKeyInUse) {
		err = errHeld
	}
	a.desk.finish(ctx, orders, err, a.alone)
}

// setAside sorts out a group that had to wait for a lock longer than the desk
// does: whose balance or pool is held waits aside, the others are settled at
// once. Where none is held it was something else that a request alone knows of
// (a key that another process works on, a reference): those wait aside.
func (d *desk) setAside(ctx context.Context, orders []*order) {
	suspect, err := d.held(orders)
	if err != nil {
		answer(orders, fmt.Errorf("%w: %w", ErrUnavailable, err))
		return
	}
	var away, stay []*order
	for _, o := range orders {
		if suspect(o) {
			away = append(away, o)
		} else {
			stay = append(stay, o)
		}
	}
	if len(away) == 0 {
		away, stay = stay, nil
	}
	d.aside.add(ctx, away)
	if len(stay) > 0 {
		d.settle(ctx, stay)
	}
}

// held finds out which orders a group had to wait for.
func (d *desk) held(orders []*order) (suspect func(*order) bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	var companies, users []int64
	for _, o := range orders {
		p := o.payer()
		companies, users = append(companies, p.company), append(users, p.user)
	}
	tx, err := d.in.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it wrote nothing
	heldCompanies, heldUsers, err := billing.Held(ctx, tx, companies, users)
	if err != nil {
		return nil, err
	}
	if len(heldCompanies)+len(heldUsers) > 0 {
		return func(o *order) bool { p := o.payer(); return heldCompanies[p.company] || heldUsers[p.user] }, nil
	}
	return func(o *order) bool {
		return o.key != nil || slices.ContainsFunc(o.messages, func(m *messages.Message) bool { return m.Segments > 1 })
	}, nil
}
