package smpp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Peer is one connection of a customer's program that we serve: the counterpart of a Bind. All methods are safe for
// concurrent use.
//
// The session has three goroutines beside that of Run. It takes about 50 KiB while idle; with everything that a hostile
// peer can fill (requests, a long PDU, responses that it does not read), 2.5 MiB and the deliver_sm of its window.
type Peer struct {
	endpoint
	opts    *Serving
	session *session
	lost    chan *session
	running atomic.Bool
	bound   atomic.Bool // Deliver works

	taken     atomic.Uint64 // requests answered with ESME_ROK
	mu        sync.Mutex
	login     Login
	admission Admission
	boundAt   time.Time
	refusals  map[Status]uint64
}

// NewPeer takes over an accepted connection; a *tls.Conn need not have made its handshake. Only Run closes it.
func NewPeer(conn net.Conn, opts *Serving) *Peer {
	o := *opts
	o.complete()
	p := &Peer{opts: &o, lost: make(chan *session, 4), refusals: make(map[Status]uint64),
		login: Login{Remote: conn.RemoteAddr()}}
	p.timers = timers{o.EnquireLink, o.EnquireTimeout, o.ResponseTimeout, o.ResponseTimeout, o.WriteTimeout,
		o.DrainTimeout, o.UnbindTimeout, o.Inactivity}
	p.sends, p.log, p.pace, p.metrics = cmdDeliverSM, slog.New(slog.DiscardHandler), newPacer(0), o.Metrics.all
	p.class, p.requested = Status.Class, p.served
	p.window.Store(int64(o.Window))
	p.session = newSession(&p.endpoint, asTransceiver, conn, p.lost)
	p.session.frames.longest = maxBindPDU
	p.session.sequence = servedSequence
	return p
}

// servedSequence is where the sequence_numbers of our requests to a peer begin: far from its own, because some
// libraries (go-smpp) take a deliver_sm for the response to a submit_sm with the same number.
const servedSequence = 0x40000000

// Run takes the connection through its bind and serves it until it ends, Unbind ends it, or ctx ends. Then requests are
// refused with ESME_RMSGQFUL, responses are awaited both ways for up to DrainTimeout, an unbind is sent and the
// connection closed. When Run returns, every done has been called, all its goroutines have ended, and responses to
// requests go nowhere. It returns why the session ended; nil if one of the sides unbound. Call it once.
func (p *Peer) Run(ctx context.Context) error {
	if !p.running.CompareAndSwap(false, true) {
		return errRunning
	}
	s := p.session
	if err := p.admit(ctx); err != nil {
		s.hangUp(false)
		return err
	}
	p.opts.Metrics.bound.Inc()
	defer p.opts.Metrics.bound.Dec()
	login := p.Login()
	log := p.opts.Log.With("system_id", login.SystemID, "remote", login.Remote.String())
	log.Info("customer's program is bound", "event", "served_bound", "bind", login.Mode.String(), "version", login.Version)
	p.bound.Store(true)
	if p.admission.Bound != nil {
		p.admission.Bound()
	}
	s.start()
	select {
	case <-p.lost:
	case <-ctx.Done():
	}
	p.bound.Store(false)
	s.refusing.Store(true)
	s.finish(cmp.Or(s.reason(), &closure{reasonShutdown, ErrNotBound}))
	why := s.reason()
	log.Info("customer's program is not bound any more", "event", "served_unbound", "reason", why.reason, "error", why.err)
	switch why.reason {
	case reasonShutdown, reasonPeerUnbind, reasonUnbound, reasonInactive:
		return nil
	}
	return why.err
}

// reason is why the session ended, or has to end; nil while it serves.
func (s *session) reason() *closure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.closing, s.leaving)
}

// Deliver sends one deliver_sm: a receipt or an MO. It waits for a slot of the window. Errors, results and done are
// those of [Bind.Submit]; a session that does not receive (bind_transmitter) always gives ErrNotBound. To a peer with
// SMPP 3.3 the optional parameters are left out.
func (p *Peer) Deliver(ctx context.Context, m *Submit, done func(Result)) error {
	if err := m.validate(); err != nil {
		return err
	}
	if !p.bound.Load() {
		return ErrNotBound
	}
	login := p.Login()
	if !login.Mode.Receives() {
		return ErrNotBound
	}
	return p.session.submit(ctx, m, login.Version >= Version34, done)
}

// Unbind ends the session within d, politely: requests are refused at once, responses are awaited for up to two thirds
// of d, then it is unbound and closed. reason is for the log. Before the bind the connection is closed after d.
func (p *Peer) Unbind(reason string, d time.Duration) {
	p.session.refusing.Store(true)
	p.session.retire(&closure{reasonUnbound, errors.New(reason)})
	p.session.endWithin(d)
}

// Login returns the login, without its password; before it was let in, only its Remote is set.
func (p *Peer) Login() Login {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.login
}

// Trace is [Bind.Trace] for the session of this peer; TracedPDU.Link is the system_id.
func (p *Peer) Trace(ctx context.Context, show func(TracedPDU) error) error {
	return p.trace(ctx, p.Login().SystemID, show)
}

// PeerSnapshot is the state of a Peer at one moment.
type PeerSnapshot struct {
	SystemID string
	Mode     BindMode
	Version  uint8
	Remote   net.Addr
	Bound    time.Time // zero before the bind

	Window   int // of the peer's requests
	Requests int // of the peer, not answered yet
	InFlight int // deliver_sm holding a window slot
	Waiting  int // Deliver calls waiting for a slot
	LastPDU  time.Time

	Accepted  uint64            // requests answered with ESME_ROK
	Refusals  map[Status]uint64 // requests answered with another status, also those that never became a Request
	Delivered uint64            // deliver_sm answered with ESME_ROK
}

// Snapshot returns the current state of the peer.
func (p *Peer) Snapshot() PeerSnapshot {
	p.mu.Lock()
	snap := PeerSnapshot{
		SystemID: p.login.SystemID, Mode: p.login.Mode, Version: p.login.Version, Remote: p.login.Remote,
		Bound: p.boundAt, Window: p.admission.Window, Refusals: maps.Clone(p.refusals),
	}
	p.mu.Unlock()
	snap.InFlight, snap.Waiting, _ = p.session.load()
	snap.Requests, snap.LastPDU = int(p.allowance.unanswered.Load()), p.lastHeard()
	snap.Accepted, snap.Delivered = p.taken.Load(), p.accepted.Load()
	return snap
}

// count counts the answer to a request.
func (p *Peer) count(status Status) {
	if status == StatusOK {
		p.taken.Add(1)
		p.session.useless.Add(-1)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals[status]++
}
