package smpp

import (
	"context"
	"net"
	"time"
)

// Peer is one connection of a customer's program that we serve: the counterpart of a Bind. All methods are safe for
// concurrent use.
//
// The session has three goroutines beside that of Run. It takes about 40 KiB while idle; with everything that a hostile
// peer can fill (requests, responses that it does not read), 1.5 MiB and the deliver_sm of its window.
type Peer struct {
	opts *Serving
	conn net.Conn
}

// NewPeer takes over an accepted connection; a *tls.Conn need not have made its handshake. Only Run closes it.
func NewPeer(conn net.Conn, opts *Serving) *Peer { panic("soon") }

// Run takes the connection through its bind and serves it until it ends, Unbind ends it, or ctx ends. Then requests are
// refused with ESME_RMSGQFUL, responses are awaited both ways for up to DrainTimeout, an unbind is sent and the connection
// closed. When Run returns, every done has been called, all its goroutines have ended, and responses to requests go
// nowhere. It returns why the session ended; nil if one of the sides unbound. Call it once.
func (p *Peer) Run(ctx context.Context) error { panic("soon") }

// Deliver sends one deliver_sm: a receipt or an MO. It waits for a slot of the window. Errors, results and done are those of
// [Bind.Submit]; a session that does not receive (bind_transmitter) always gives ErrNotBound. To a peer with SMPP 3.3 the
// optional parameters are left out.
func (p *Peer) Deliver(ctx context.Context, m *Submit, done func(Result)) error { panic("soon") }

// Unbind ends the session within d, politely: requests are refused at once, responses are awaited for up to two thirds of
// d, then it is unbound and closed. reason is for the log. Before the bind it closes the connection.
func (p *Peer) Unbind(reason string, d time.Duration) { panic("soon") }

// Login returns the login, without its password; zero before it was let in.
func (p *Peer) Login() Login { panic("soon") }

// Trace is [Bind.Trace] for the session of this peer; TracedPDU.Link is the system_id.
func (p *Peer) Trace(ctx context.Context, show func(TracedPDU) error) error { panic("soon") }

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
func (p *Peer) Snapshot() PeerSnapshot { panic("soon") }
