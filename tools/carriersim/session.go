package carriersim

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// session is one connection. Its reader also responds; its writer only writes.
type session struct {
	c      *Carrier
	conn   net.Conn
	number int
	opened int64
	done   chan struct{} // closed with the connection
	once   sync.Once
	signal chan struct{} // there is something to write

	lastRead atomic.Int64 // Carrier.clock of the last bytes
	closing  atomic.Bool  // write the rest, then close; read no more

	// Under Carrier.mu.
	mode        uint32 // the command_id of its bind, 0 = not bound
	systemID    string
	submits     int
	open        map[uint32]struct{} // submit_sm whose response comes later or never
	unbindUntil int64               // our unbind was sent: close the connection then; 0 = no unbind
	enquiredAt  int64

	// Under mu.
	mu      sync.Mutex
	room    sync.Cond
	out     []byte
	dead    bool
	lastSeq uint32
	unacked map[uint32]*event   // deliveries that wait for their response
	overdue map[uint32]struct{} // deliveries whose response is overdue
	pending map[uint32]uint32   // our other requests: sequence → command
	floods  uint32              // deliveries of Faults.FloodPerSec so far

	// Used by the reader only.
	msg     submit
	pushed  bool // the scheduler has new events
	scratch []byte
}

const (
	writeTimeout = 10 * time.Second
	flushAt      = 64 << 10  // bytes to write before the input is drained
	outLimit     = 512 << 10 // above this many bytes to write, reading stops
)

func newSession(c *Carrier, conn net.Conn, number int) *session {
	s := &session{
		c: c, conn: conn, number: number, opened: c.clock(),
		done: make(chan struct{}), signal: make(chan struct{}, 1),
		open: map[uint32]struct{}{}, unacked: map[uint32]*event{}, pending: map[uint32]uint32{},
		overdue: map[uint32]struct{}{},
	}
	s.room.L = &s.mu
	s.lastRead.Store(s.opened)
	return s
}

// send queues bytes for the writer. It does not block. It discards them when the connection
// is closed or half-open, or when the peer has not read 2 MiB. The latter does not happen
// for immediate responses, because the reader pauses first (drain).
func (s *session) send(raw []byte) {
	if s.c.halfOpen.Load() {
		return
	}
	s.mu.Lock()
	if !s.dead && !s.closing.Load() && len(s.out) < 4*outLimit {
		s.out = append(s.out, raw...)
	}
	s.mu.Unlock()
}

// request sends a request without a body.
func (s *session) request(command uint32) {
	s.mu.Lock()
	seq := s.nextSeq()
	if len(s.pending) > 100 {
		clear(s.pending)
	}
	s.pending[seq] = command
	s.mu.Unlock()
	var pdu [headerLen]byte
	s.send(finish(appendHeader(pdu[:0], command, OK, seq), 0))
}

// nextSeq returns the next sequence_number; the caller holds s.mu.
func (s *session) nextSeq() uint32 {
	s.lastSeq++
	if s.lastSeq > 0x7FFFFFFF {
		s.lastSeq = 1
	}
	return s.lastSeq
}

// deliver sends a receipt or text and keeps it until it is answered; false when the receipt
// window is full.
func (s *session) deliver(e *event, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || s.closing.Load() || len(s.unacked) >= s.c.opts.ReceiptWindow || len(s.out) > outLimit {
		return false
	}
	e.seq = s.nextSeq()
	e.sentAt = now
	s.unacked[e.seq] = e
	start := len(s.out)
	s.out = append(s.out, e.pdu...)
	putSeq(s.out[start:], e.seq)
	if s.c.halfOpen.Load() {
		s.out = s.out[:start]
	}
	return true
}

// flush wakes the writer.
func (s *session) flush() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// finishSoon closes the connection after writing everything.
func (s *session) finishSoon() {
	s.closing.Store(true)
	s.flush()
}

// drop closes the connection at once and discards unwritten bytes.
func (s *session) drop(reset bool) {
	s.once.Do(func() {
		if reset {
			conn := s.conn
			if secure, ok := conn.(*tls.Conn); ok {
				conn = secure.NetConn()
			}
			if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
				_ = tcp.SetLinger(0)
			}
			_ = conn.Close()
		}
		s.mu.Lock()
		s.dead = true
		s.room.Broadcast()
		s.mu.Unlock()
		close(s.done)
		_ = s.conn.Close()
	})
}

// write is the writer goroutine.
func (s *session) write() {
	var spare []byte
	for {
		select {
		case <-s.done:
			return
		case <-s.signal:
		}
		for {
			s.mu.Lock()
			batch := s.out
			s.out = spare[:0]
			s.room.Broadcast()
			s.mu.Unlock()
			if len(batch) == 0 {
				spare = batch
				break
			}
			_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := s.conn.Write(batch); err != nil {
				s.drop(false)
				return
			}
			if spare = batch; cap(spare) > 4*outLimit {
				spare = nil
			}
		}
		if s.closing.Load() {
			// Half-close first: closing with unread input would send RST, which may
			// overtake and destroy the last bytes written.
			if half, ok := s.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				_ = s.conn.SetReadDeadline(time.Now().Add(time.Second))
				return
			}
			s.drop(false)
			return
		}
	}
}

var errLength = errors.New("command_length out of range")

// read is the reader goroutine. It ends the session.
func (s *session) read() {
	s.c.opts.Log.Info("connection opened", "carrier", s.c.opts.Name, "session", s.number)
	err := s.readAll()
	s.drop(false)
	s.c.forget(s)
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	s.c.opts.Log.Info("connection closed", "carrier", s.c.opts.Name, "session", s.number, "error", err)
}

func (s *session) readAll() error {
	r := bufio.NewReaderSize(s.conn, maxPDU)
	for {
		s.drain(r, headerLen)
		head, err := r.Peek(headerLen)
		if err != nil {
			return err
		}
		h := parseHeader(head)
		if h.length < headerLen || h.length > maxPDU {
			s.refuseLength(h)
			_, _ = io.Copy(io.Discard, r) // until the half-closed connection ends
			return errLength
		}
		s.drain(r, int(h.length))
		frame, err := r.Peek(int(h.length))
		if err != nil {
			return err
		}
		s.waitWhileStopped()
		s.handle(h, frame[headerLen:])
		_, _ = r.Discard(len(frame))
		if s.closing.Load() {
			s.flush()
			_, _ = io.Copy(io.Discard, r)
			return nil
		}
	}
}

// drain flushes the responses when the next n bytes have not arrived yet, or when many
// bytes are queued.
func (s *session) drain(r *bufio.Reader, n int) {
	s.mu.Lock()
	waiting := len(s.out)
	s.mu.Unlock()
	if r.Buffered() >= n && waiting < flushAt {
		return
	}
	if waiting > 0 {
		s.flush()
	}
	if s.pushed {
		s.pushed = false
		s.c.wake()
	}
	s.lastRead.Store(s.c.clock())
	if waiting > outLimit {
		s.mu.Lock()
		for len(s.out) > outLimit && !s.dead {
			s.room.Wait()
		}
		s.mu.Unlock()
	}
}

// waitWhileStopped waits while Faults.StopReading is set.
func (s *session) waitWhileStopped() {
	for s.c.stopReading.Load() {
		s.c.mu.Lock()
		changed := s.c.changed
		s.c.mu.Unlock()
		if !s.c.stopReading.Load() {
			return
		}
		select {
		case <-changed:
		case <-s.done:
			return
		}
	}
}

// refuseLength responds to an impossible command_length: the rest of the stream is
// unreadable.
func (s *session) refuseLength(h header) {
	s.c.mu.Lock()
	s.c.violate(s, h, InvalidCommandLen, "command_length is below 16 or above 70,000")
	s.c.mu.Unlock()
	s.nack(h.seq, InvalidCommandLen)
	s.finishSoon()
}

func (s *session) nack(seq uint32, status Status) {
	var pdu [headerLen]byte
	s.send(finish(appendHeader(pdu[:0], cmdGenericNack, status, seq), 0))
}
