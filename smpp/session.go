package smpp

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// role is what one session is bound as.
type role uint8

const (
	asTransceiver role = iota
	asTransmitter
	asReceiver
)

func (r role) submits() bool { return r != asReceiver }

// command is the bind command of the role.
func (r role) command() command {
	switch r {
	case asTransmitter:
		return cmdBindTransmitter
	case asReceiver:
		return cmdBindReceiver
	}
	return cmdBindTransceiver
}

func (r role) String() string {
	switch r {
	case asTransmitter:
		return "transmitter"
	case asReceiver:
		return "receiver"
	}
	return "transceiver"
}

// session is one bound connection: a reader, a writer and a keeper goroutine
// around a table of unanswered submits. It lives from the bind response to the
// first failure, and is never used again.
type session struct {
	owner  *endpoint
	role   role
	conn   net.Conn
	frames *frameReader
	lost   chan<- *session // gets the session once when it ends or the peer unbinds

	running  sync.WaitGroup
	kick     chan struct{} // wakes the writer; capacity 1
	dead     chan struct{} // closed at the end
	heard    clock         // when the last byte came
	active   clock         // when the last PDU came that keeps the session from being idle
	refusing atomic.Bool   // requests of the peer are refused
	owed     atomic.Int64  // requests of the peer accepted here and not yet answered
	useless  atomic.Int64  // PDUs of a served peer (rest)
	rested   time.Time     // the reader's
	begun    time.Time
	cert     time.Time // when the peer's TLS certificate expires; zero without TLS

	mu         sync.Mutex
	closing    *closure // why it ended; nil while it runs
	intended   *closure // why it is being ended, after an unbind
	leaving    *closure // why it has to end (retire)
	refusal    error    // the error of Submit; nil while submits are admitted
	draining   bool     // no more submits are admitted
	hurried    bool     // the end waits for no more responses
	peerUnbind bool     // the peer sent unbind
	unbindSeq  uint32   // of the unbind_resp that it waits for
	unbound    bool     // the peer answered our unbind
	changed    sync.Cond
	sequence   uint32
	order      uint64 // of the last admitted submit
	sent       uint64 // order of the last submit that was written completely
	pending    map[uint32]*pending
	overdue    int
	given      abandoned      // given up while the session lives
	queue      fifo[*pending] // admitted, not yet written
	waiting    fifo[*waiter]
	control    []byte // PDUs that go out before any submit and without pace
	// Bytes of control PDUs since the beginning.
	controlQueued, controlWritten uint64
	writerIdle                    bool
	probe                         probe
}

// closure is why a session ended: a reason from the closed set of the metrics
// and the error behind it.
type closure struct {
	reason string
	err    error
}

// The reasons for which sessions end.
const (
	reasonShutdown       = "shutdown"
	reasonPairLost       = "pair_lost"
	reasonPeerClosed     = "peer_closed"
	reasonPeerUnbind     = "peer_unbind"
	reasonReadError      = "read_error"
	reasonWriteError     = "write_error"
	reasonWriteTimeout   = "write_timeout"
	reasonEnquireTimeout = "enquire_timeout"
	reasonProtocol       = "protocol_error"
	reasonNotBound       = "not_bound_at_peer"
	reasonInactive       = "inactive"
	reasonUnbound        = "unbound" // Peer.Unbind
)

// clock is the time of something, readable by any goroutine; at first its base.
type clock struct {
	base  time.Time
	since atomic.Int64 // nanoseconds
}

func (c *clock) set(t time.Time) { c.since.Store(int64(t.Sub(c.base))) }
func (c *clock) get() time.Time  { return c.base.Add(time.Duration(c.since.Load())) }

func newSession(owner *endpoint, r role, conn net.Conn, lost chan<- *session) *session {
	s := &session{
		owner:   owner,
		role:    r,
		conn:    conn,
		lost:    lost,
		kick:    make(chan struct{}, 1),
		dead:    make(chan struct{}),
		pending: make(map[uint32]*pending),
		begun:   time.Now(),
	}
	s.changed.L = &s.mu
	s.heard.base, s.active.base = s.begun, s.begun
	s.frames = newFrameReader(&listener{conn, &s.heard}, conn.SetReadDeadline)
	return s
}

// listener records when bytes arrive.
type listener struct {
	net.Conn
	heard *clock
}

func (c *listener) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.set(time.Now())
	}
	return n, err
}

// start starts the goroutines of the session.
func (s *session) start() {
	s.running.Go(s.read)
	s.running.Go(s.write)
	s.running.Go(s.keep)
}

// end ends the session at once; only the first call has an effect. It refuses waiting
// submits; finish settles the unanswered ones.
func (s *session) end(why *closure) {
	s.mu.Lock()
	if s.closing != nil {
		s.mu.Unlock()
		return
	}
	if s.intended != nil {
		why = s.intended
	}
	s.closing = why
	s.drainLocked()
	intended := s.intended != nil
	s.mu.Unlock()
	close(s.dead)
	s.hangUp(intended)
	s.owner.metrics.closed(why.reason)
	s.announce()
}

// retire asks the owner to end the session politely; only the first reason counts.
func (s *session) retire(why *closure) {
	s.mu.Lock()
	first := s.leaving == nil
	if first {
		s.leaving = why
	}
	s.mu.Unlock()
	if first {
		s.announce()
	}
}

// hangUp closes the connection. close_notify of TLS is sent only at an intended end,
// because a peer that has stopped reading would block it.
func (s *session) hangUp(intended bool) {
	conn := s.conn
	if secure, ok := conn.(*tls.Conn); ok && !intended {
		conn = secure.NetConn()
	}
	_ = conn.Close() // a failing close has no consequence
}

// announce reports to the bind that this session has ended or must end.
func (s *session) announce() {
	select {
	case s.lost <- s:
	default: // lost has capacity for an end and an unbind of each session
	}
}

func (s *session) ended() bool {
	select {
	case <-s.dead:
		return true
	default:
		return false
	}
}

// cause returns why the session ended or is being ended.
func (s *session) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing != nil {
		return s.closing.err
	}
	return errPeerUnbind
}
