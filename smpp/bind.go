package smpp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrNotBound is the error of Submit while the bind is not bound, is unbinding or has
	// stopped. Nothing was sent.
	ErrNotBound = errors.New("smpp: link is not bound")
	// ErrPaused is the error of Submit while the bind is paused. Nothing was sent.
	ErrPaused = errors.New("smpp: link is paused")

	errRunning = errors.New("smpp: link is already running")
)

// Bind is one configured connection to a carrier; a lost bind is made again. All methods
// are safe for concurrent use.
type Bind struct {
	brokenSeen, refusedSeen Seldom // malformed deliveries

	endpoint
	opts  Options
	dial  func(ctx context.Context, address string) (net.Conn, error)
	retry backoff // as a Run begins

	running    atomic.Bool
	submitting atomic.Pointer[session] // the session Submit uses; nil when not bound
	peer       atomic.Uint32           // sc_interface_version of the last bind response; 0: it had none

	mu         sync.Mutex
	phase      State // Down, Connecting or Bound
	paused     bool
	since      time.Time
	boundSince time.Time
	sessions   []*session
	endBy      time.Time // the sessions end by then (EndWithin); zero: as the options say
	lastError  error
	moved      chan struct{} // closed and replaced at every change of state
	unreached  unreached
}

// New checks the options and returns a Bind. It starts nothing; Run does.
func New(opts Options) (*Bind, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts.Log = opts.Log.With("carrier", opts.Carrier, "link", opts.Name)
	b := &Bind{
		opts:  opts,
		retry: backoff{base: backoffBase, most: backoffMost},
		since: time.Now(),
		moved: make(chan struct{}),
	}
	b.timers = timers{opts.EnquireLink, opts.EnquireTimeout, opts.ResponseTimeout, opts.UnknownHold, opts.WriteTimeout,
		opts.DrainTimeout, opts.UnbindTimeout, 0}
	b.sends, b.log, b.pace = cmdSubmitSM, opts.Log, newPacer(opts.TPS)
	b.metrics = opts.Metrics.bind(opts.Carrier, opts.Name)
	b.class, b.requested, b.onLate = Status.Class, b.delivered, opts.OnLate
	if opts.Class != nil {
		b.class = opts.Class
	}
	b.window.Store(int64(opts.Window))
	b.dial = b.dialCarrier
	return b, nil
}

// Submit sends one submit_sm. It waits for a window slot and for the pace, then queues
// the PDU for writing.
//
// With an error (an invalid field: *FieldError, ErrNotBound, ErrPaused, or the
// context's) nothing was or will be sent and done is never called. With nil,
// done is called exactly once, from a goroutine of the bind: it must not block
// and must not call Submit. Segments submitted one after another leave in that
// order. m may be reused once Submit has returned.
func (b *Bind) Submit(ctx context.Context, m *Submit, done func(Result)) error {
	if err := m.validate(); err != nil {
		return err
	}
	s := b.submitting.Load()
	if s == nil {
		return b.refusal()
	}
	return s.submit(ctx, m, b.opts.Version >= Version34, done)
}

// busy returns the status that refuses a delivery for now.
func (b *Bind) busy() Status {
	if b.opts.Busy != nil {
		return cmp.Or(b.opts.Busy(), StatusMsgQueueFull)
	}
	return StatusMsgQueueFull
}

// refusal returns why nothing can be submitted now.
func (b *Bind) refusal() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paused {
		return ErrPaused
	}
	return ErrNotBound
}

// WaitBound waits until the bind is bound and not paused.
func (b *Bind) WaitBound(ctx context.Context) error {
	for {
		b.mu.Lock()
		state, moved := b.stateLocked(), b.moved
		b.mu.Unlock()
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

// SetTPS changes the pace at once: the most submit_sm in any second, 0 for unpaced. An
// invalid rate (negative, NaN, infinite) changes nothing.
func (b *Bind) SetTPS(tps float64) {
	if b.pace.set(tps) {
		if s := b.submitting.Load(); s != nil {
			s.reconsider()
		}
	}
}

// SetWindow changes the window at once; below 1 it is 1. When it shrinks, no
// submit_sm goes out until enough are answered.
func (b *Bind) SetWindow(n int) {
	b.window.Store(int64(max(n, 1)))
	if s := b.submitting.Load(); s != nil {
		s.reconsider()
	}
}

// Pause makes every waiting and later Submit fail with ErrPaused. The bind stays:
// responses and receipts still arrive.
func (b *Bind) Pause() { b.setPaused(true) }

// Resume ends a Pause.
func (b *Bind) Resume() { b.setPaused(false) }

func (b *Bind) setPaused(paused bool) {
	b.mu.Lock()
	before := b.stateLocked()
	b.paused = paused
	b.publishLocked(before)
	b.offerLocked()
	sessions := b.sessions
	b.mu.Unlock()
	for _, s := range sessions {
		s.hold(paused)
	}
}

// setPhase records the state of the sessions. cause is why the bind is not bound.
func (b *Bind) setPhase(phase State, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.stateLocked()
	b.phase = phase
	if cause != nil {
		b.lastError = cause
	}
	b.boundSince = time.Time{}
	if phase == Bound {
		b.boundSince = time.Now()
	}
	b.publishLocked(before)
	b.offerLocked()
}

func (b *Bind) stateLocked() State {
	if b.paused {
		return Paused
	}
	return b.phase
}

// publishLocked wakes those who wait for a change of state.
func (b *Bind) publishLocked(before State) {
	now := b.stateLocked()
	if now == before {
		return
	}
	b.since = time.Now()
	close(b.moved)
	b.moved = make(chan struct{})
}

// offerLocked sets or removes the session that Submit uses.
func (b *Bind) offerLocked() {
	if b.stateLocked() != Bound {
		b.submitting.Store(nil)
		return
	}
	for _, s := range b.sessions {
		if s.role.submits() {
			b.submitting.Store(s)
		}
	}
}

// Snapshot returns the current state of the bind.
func (b *Bind) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	snap := Snapshot{
		Carrier:     b.opts.Carrier,
		Name:        b.opts.Name,
		State:       b.stateLocked(),
		Since:       b.since,
		Sessions:    len(modes[b.opts.Mode].roles),
		BoundSince:  b.boundSince,
		Window:      int(b.window.Load()),
		Deliveries:  int(b.allowance.unanswered.Load()),
		PeerVersion: uint8(b.peer.Load()),
		TPS:         b.pace.rate(),
		Totals:      Totals{Accepted: b.accepted.Load(), Throttled: b.throttled.Load()},
	}
	for _, s := range b.sessions {
		if s.ended() {
			continue
		}
		snap.SessionsBound++
		inFlight, waiting, overdue := s.load()
		snap.InFlight += inFlight
		snap.Waiting += waiting
		snap.Overdue += overdue
	}
	if b.lastError != nil {
		snap.LastError = b.lastError.Error()
		if b.phase == Bound { // the error is over; it is shown with the time of its end
			snap.LastError += " (over since " + b.boundSince.UTC().Format(time.RFC3339) + ")"
		}
	}
	snap.LastPDU = b.lastHeard()
	return snap
}
