package smpp

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Run dials, binds, serves and reconnects until ctx ends. Then it refuses new
// submits, waits up to DrainTimeout for the window and the deliveries in hand,
// unbinds, waits for unbind_resp and closes; what is unanswered by then ends as
// NoAnswer. When Run returns, every done has been called and everything it
// started has ended. It returns nil unless the link is already running.
func (l *Link) Run(ctx context.Context) error {
	if !l.running.CompareAndSwap(false, true) {
		return errRunning
	}
	defer l.running.Store(false)
	l.opts.Metrics.watch(l)
	defer l.opts.Metrics.forget(l)

	l.inbound = make(chan inbound, l.opts.DeliverQueue)
	var deliverer, teller sync.WaitGroup
	deliverer.Go(l.deliver)
	stopped := make(chan struct{})
	teller.Go(func() { l.tell(stopped) })

	l.keepBound(ctx)

	close(l.inbound)
	deliverer.Wait()
	l.setPhase(Down, nil)
	close(stopped)
	teller.Wait()
	return nil
}

// keepBound binds again and again until ctx ends.
func (l *Link) keepBound(ctx context.Context) {
	retry := l.retry
	for ctx.Err() == nil {
		l.setPhase(Connecting, nil)
		group, err := l.bind(ctx)
		if err == nil {
			bound := time.Now()
			err = l.serve(ctx, group)
			retry.served(time.Since(bound))
		}
		if ctx.Err() != nil {
			break
		}
		delay := retry.next(err)
		l.setPhase(Down, err)
		level := slog.LevelWarn
		if bindStatus(err) != StatusOK {
			level = slog.LevelError // nobody but a person can help, as a rule
		}
		l.opts.Log.Log(ctx, level, "link is down", "error", err, "retry_in", delay.Round(time.Millisecond))
		pause(ctx, delay)
	}
}

// group is the sessions of one bind: a transceiver, or a transmitter and a
// receiver. They stand and fall together.
type group struct {
	sessions []*session
	// lost gets every session that ended or was asked to unbind by the peer.
	lost chan *session
}

// bind establishes every session of the link, or none.
func (l *Link) bind(ctx context.Context) (*group, error) {
	roles := l.opts.Mode.roles()
	g := &group{lost: make(chan *session, 2*len(roles))}
	for _, r := range roles {
		s, err := l.bindSession(ctx, r, g.lost)
		if err != nil {
			l.dissolve(g, &closure{reasonPairLost, err})
			return nil, fmt.Errorf("binding to %s as %s: %w", l.opts.Address, r, err)
		}
		l.totals.binds.Add(1)
		g.sessions = append(g.sessions, s)
		l.setSessions(g.sessions)
		s.start()
	}
	return g, nil
}

// serve lets the group work until one session is lost or ctx ends, and says
// why it ended.
func (l *Link) serve(ctx context.Context, g *group) error {
	l.setPhase(Bound, nil)
	l.opts.Log.Info("link is bound", "address", l.opts.Address, "bind", l.opts.Mode.String())
	var cause error
	select {
	case s := <-g.lost:
		cause = s.cause()
		l.setPhase(Down, cause)
		l.dissolve(g, &closure{reasonPairLost, cause})
	case <-ctx.Done():
		l.setPhase(Down, nil)
		l.dissolve(g, &closure{reasonShutdown, ErrNotBound})
		l.opts.Log.Info("link is unbound")
	}
	return cause
}

// dissolve ends every session of the group as gently as each allows, waits for
// their goroutines and settles what they leave.
func (l *Link) dissolve(g *group, why *closure) {
	var finishing sync.WaitGroup
	for _, s := range g.sessions {
		finishing.Go(func() { s.finish(why) })
	}
	finishing.Wait()
	l.setSessions(nil)
}

func (l *Link) setSessions(sessions []*session) {
	l.mu.Lock()
	l.sessions = append([]*session(nil), sessions...)
	l.mu.Unlock()
}

// tell calls OnState for every change, in order, until stopped and all is told.
func (l *Link) tell(stopped <-chan struct{}) {
	for {
		l.mu.Lock()
		changes, moved := l.changes, l.moved
		l.changes = nil
		l.mu.Unlock()
		for _, state := range changes {
			l.opts.OnState(state)
		}
		if len(changes) > 0 {
			continue
		}
		select {
		case <-moved:
		case <-stopped:
			select {
			case <-moved:
			default:
				return
			}
		}
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
