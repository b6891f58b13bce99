package smpp

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Run dials, binds, serves and reconnects until ctx ends. It then refuses new submits,
// waits up to DrainTimeout for responses and for deliveries being processed, unbinds,
// waits for unbind_resp and closes. [Bind.EndWithin] shortens these waits. Submits without a
// response end as NoAnswer. When Run returns, every done has been called and all its
// goroutines have ended. It returns nil unless the bind is already running.
func (b *Bind) Run(ctx context.Context) error {
	if !b.running.CompareAndSwap(false, true) {
		return errRunning
	}
	defer b.running.Store(false)
	b.opts.Metrics.watch(b)
	defer b.opts.Metrics.forget(b)

	b.mu.Lock()
	b.endBy = time.Time{}
	b.mu.Unlock()
	b.keepBound(ctx)
	b.setPhase(Down, nil)
	return nil
}

// keepBound binds again until ctx ends.
func (b *Bind) keepBound(ctx context.Context) {
	retry, attempt := b.retry, 0
	b.reached(time.Now())
	defer b.reached(time.Time{})
	for ctx.Err() == nil {
		b.setPhase(Connecting, nil)
		group, err := b.bind(ctx, attempt)
		attempt++
		switch {
		case err == nil:
			bound := time.Now()
			b.reached(time.Time{})
			err = b.serve(ctx, group)
			attempt = 0
			retry.served(time.Since(bound))
			b.reached(time.Now())
		case refusal(err) != nil:
			b.reached(time.Now())
		default:
			b.missed()
		}
		if ctx.Err() != nil {
			break
		}
		delay := retry.next(err, attempt%b.addresses() != 0)
		b.setPhase(Down, err)
		if retryIn := delay.Round(time.Millisecond); refusal(err) == nil {
			b.opts.Log.Warn("link is down", "event", "link_down", "error", err, "retry_in", retryIn)
		} else { // an operator usually must act
			b.opts.Log.Error("link is down", "event", "link_down", "error", err, "retry_in", retryIn)
		}
		pause(ctx, delay)
	}
}

// group is the sessions of one bind: a transceiver, or a transmitter and a receiver,
// bound and closed together.
type group struct {
	sessions []*session
	address  string // of the first
	// lost receives every session that ended or that the peer unbound.
	lost chan *session
}

// bind establishes every session of the bind, or none. The addresses take turns by attempt, from 0.
func (b *Bind) bind(ctx context.Context, attempt int) (*group, error) {
	roles := modes[b.opts.Mode].roles
	g := &group{lost: make(chan *session, 2*len(roles))}
	for _, r := range roles {
		addresses := b.opts.account(r).Addresses
		address := addresses[attempt%len(addresses)]
		s, err := b.bindSession(ctx, r, address, g.lost)
		if err != nil {
			b.dissolve(g, &closure{reasonPairLost, err})
			return nil, fmt.Errorf("binding to %s as %s: %w", address, r, err)
		}
		g.sessions, g.address = append(g.sessions, s), cmp.Or(g.address, address)
		b.setSessions(g.sessions)
		s.start()
	}
	return g, nil
}

// addresses returns after how many attempts each address was tried.
func (b *Bind) addresses() (most int) {
	for _, r := range modes[b.opts.Mode].roles {
		most = max(most, len(b.opts.account(r).Addresses))
	}
	return most
}

// serve runs the group until one session is lost or ctx ends, and returns the reason.
func (b *Bind) serve(ctx context.Context, g *group) error {
	b.setPhase(Bound, nil)
	b.opts.Log.Info("link is bound", "event", "link_bound", "address", g.address, "bind", b.opts.Mode.String(),
		"smsc_version", fmt.Sprintf("%#02x", b.peer.Load()))
	var cause error
	select {
	case s := <-g.lost:
		cause = s.cause()
		b.setPhase(Down, cause)
		b.dissolve(g, &closure{reasonPairLost, cause})
	case <-ctx.Done():
		b.setPhase(Down, nil)
		b.dissolve(g, &closure{reasonShutdown, ErrNotBound})
		b.opts.Log.Info("link is unbound", "event", "link_unbound")
	}
	return cause
}

// dissolve ends every session of the group, by unbind where possible, waits for their
// goroutines and settles their remaining submits.
func (b *Bind) dissolve(g *group, why *closure) {
	var finishing sync.WaitGroup
	for _, s := range g.sessions {
		finishing.Go(func() { s.finish(why) })
	}
	finishing.Wait()
	b.setSessions(nil)
}

func (b *Bind) setSessions(sessions []*session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions = append([]*session(nil), sessions...)
	b.hurryLocked()
}

// EndWithin makes the sessions end within d, also if they are ending already: a third of it is
// left for the unbind. It holds until the next Run. The caller ends the context of Run.
func (b *Bind) EndWithin(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endBy = time.Now().Add(d)
	b.hurryLocked()
}

// hurryLocked tells the sessions how long their end may take, if that is limited.
func (b *Bind) hurryLocked() {
	if b.endBy.IsZero() {
		return
	}
	for _, s := range b.sessions {
		s.endWithin(time.Until(b.endBy))
	}
}

// pause sleeps for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
