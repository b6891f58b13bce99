package smpp

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrNotBound is Submit's answer while the link is not bound, is unbinding
	// or has stopped. Nothing was sent.
	ErrNotBound = errors.New("smpp: link is not bound")
	// ErrPaused is Submit's answer while the link is paused. Nothing was sent.
	ErrPaused = errors.New("smpp: link is paused")

	errRunning = errors.New("smpp: link is already running")
)

// Link is one configured connection to a carrier, bound again whenever it is
// lost. All methods are safe for concurrent use.
type Link struct {
	brokenSeen, refusedSeen Seldom // deliveries that could not be read whole

	opts    Options
	pace    *pacer
	metrics *linkMetrics
	dial    func(context.Context) (net.Conn, error)
	retry   backoff // as every Run begins

	running    atomic.Bool
	submitting atomic.Pointer[session] // the session Submit uses; nil when not bound
	window     atomic.Int64
	lastPDU    atomic.Int64 // Unix nanoseconds
	totals     totals
	tracers    tracers

	inbound    chan inbound // deliver_sm on their way to Options.Deliver
	unanswered atomic.Int64 // deliver_sm accepted and not yet answered
	heldOctets atomic.Int64 // what they take

	mu         sync.Mutex
	phase      State // Down, Connecting or Bound: what the sessions do
	paused     bool
	since      time.Time
	boundSince time.Time
	sessions   []*session
	lastError  error
	moved      chan struct{} // closed and replaced at every change of state
	changes    []State       // not yet told to OnState
}

type totals struct {
	binds, accepted, rejected, throttled, noAnswer, notWritten atomic.Uint64
	delivered, refused, late                                   atomic.Uint64
}

// New checks the options and returns a Link that does nothing until Run.
func New(opts Options) (*Link, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts.Log = opts.Log.With("carrier", opts.Carrier, "link", opts.Name)
	l := &Link{
		opts:    opts,
		pace:    newPacer(opts.TPS),
		metrics: opts.Metrics.link(opts.Carrier, opts.Name),
		retry:   newBackoff(),
		since:   time.Now(),
		moved:   make(chan struct{}),
	}
	l.window.Store(int64(opts.Window))
	l.dial = l.dialCarrier
	return l, nil
}

// Submit sends one submit_sm. It waits for a window slot and for its place in
// the pace, then queues the PDU for writing.
//
// With an error (an invalid field: *FieldError, ErrNotBound, ErrPaused, or the
// context's) nothing was or will be sent and done is never called. With nil,
// done is called exactly once, from a goroutine of the link: it must not block
// and must not call Submit. Segments submitted one after another leave in that
// order. m may be reused once Submit has returned.
func (l *Link) Submit(ctx context.Context, m *Submit, done func(Result)) error {
	if err := m.validate(); err != nil {
		return err
	}
	s := l.submitting.Load()
	if s == nil {
		return l.refusal()
	}
	p := newPending(m.Key, done)
	if err := encodeSubmit(&p.frame, m); err != nil {
		p.recycle()
		return err
	}
	return s.submit(ctx, p)
}

// class is what a status means for the link's carrier.
func (l *Link) class(s Status) Class {
	if l.opts.Class != nil {
		return l.opts.Class(s)
	}
	return s.Class()
}

// refusal says why nothing can be submitted now.
func (l *Link) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused {
		return ErrPaused
	}
	return ErrNotBound
}

// WaitBound waits until the link is bound and not paused.
func (l *Link) WaitBound(ctx context.Context) error {
	for {
		l.mu.Lock()
		state, moved := l.stateLocked(), l.moved
		l.mu.Unlock()
		if state == Bound {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// SetTPS changes the pace at once: the most submit_sm in any one second, 0 for
// unpaced. A value that is no rate (negative, NaN, infinite) changes nothing.
func (l *Link) SetTPS(tps float64) {
	if l.pace.set(tps) {
		if s := l.submitting.Load(); s != nil {
			s.reconsider()
		}
	}
}

// SetWindow changes the window at once; below 1 it is 1. When it shrinks, no
// submit_sm goes out until enough are answered.
func (l *Link) SetWindow(n int) {
	l.window.Store(int64(max(n, 1)))
	if s := l.submitting.Load(); s != nil {
		s.reconsider()
	}
}

// Pause makes every waiting and coming Submit fail with ErrPaused. The bind
// stays: answers and receipts go on arriving.
func (l *Link) Pause() { l.setPaused(true) }

// Resume ends a Pause.
func (l *Link) Resume() { l.setPaused(false) }

func (l *Link) setPaused(paused bool) {
	l.mu.Lock()
	before := l.stateLocked()
	l.paused = paused
	l.publishLocked(before)
	l.offerLocked()
	sessions := l.sessions
	l.mu.Unlock()
	for _, s := range sessions {
		s.hold(paused)
	}
}

// setPhase records what the sessions do now. cause is why it is not bound.
func (l *Link) setPhase(phase State, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.stateLocked()
	l.phase = phase
	if cause != nil {
		l.lastError = cause
	}
	l.boundSince = time.Time{}
	if phase == Bound {
		l.boundSince = time.Now()
	}
	l.publishLocked(before)
	l.offerLocked()
}

func (l *Link) stateLocked() State {
	if l.paused {
		return Paused
	}
	return l.phase
}

// publishLocked tells a change of state to whoever waits for one.
func (l *Link) publishLocked(before State) {
	now := l.stateLocked()
	if now == before {
		return
	}
	l.since = time.Now()
	if l.opts.OnState != nil {
		l.changes = append(l.changes, now)
	}
	close(l.moved)
	l.moved = make(chan struct{})
}

// offerLocked gives Submit its session, or takes it away.
func (l *Link) offerLocked() {
	if l.stateLocked() != Bound {
		l.submitting.Store(nil)
		return
	}
	for _, s := range l.sessions {
		if s.role.submits() {
			l.submitting.Store(s)
		}
	}
}

// Snapshot returns the link as it is now.
func (l *Link) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	snap := Snapshot{
		Carrier:    l.opts.Carrier,
		Name:       l.opts.Name,
		Address:    l.opts.Address,
		Mode:       l.opts.Mode,
		State:      l.stateLocked(),
		Since:      l.since,
		Sessions:   len(l.opts.Mode.roles()),
		BoundSince: l.boundSince,
		Window:     int(l.window.Load()),
		Deliveries: int(l.unanswered.Load()),
		TPS:        l.pace.rate(),
		Totals:     l.totals.read(),
	}
	for _, s := range l.sessions {
		if s.ended() {
			continue
		}
		snap.SessionsBound++
		inFlight, waiting, overdue := s.load()
		snap.InFlight += inFlight
		snap.Waiting += waiting
		snap.Overdue += overdue
	}
	if l.lastError != nil {
		snap.LastError = l.lastError.Error()
		if l.phase == Bound { // it is history, and says until when
			snap.LastError += " (over since " + l.boundSince.UTC().Format(time.RFC3339) + ")"
		}
	}
	if at := l.lastPDU.Load(); at != 0 {
		snap.LastPDU = time.Unix(0, at)
	}
	return snap
}

func (t *totals) read() Totals {
	return Totals{
		Binds:      t.binds.Load(),
		Accepted:   t.accepted.Load(),
		Rejected:   t.rejected.Load(),
		Throttled:  t.throttled.Load(),
		NoAnswer:   t.noAnswer.Load(),
		NotWritten: t.notWritten.Load(),
		Delivered:  t.delivered.Load(),
		Refused:    t.refused.Load(),
		Late:       t.late.Load(),
	}
}
