package carriersim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Carrier is a simulated message centre. New creates it and Serve runs it; every other
// method may be called at any time from any goroutine.
type Carrier struct {
	opts        Options
	epoch       time.Time
	kick        chan struct{} // wakes the scheduler
	halfOpen    atomic.Bool   // Faults.HalfOpen
	stopReading atomic.Bool   // Faults.StopReading

	mu         sync.Mutex
	faults     Faults
	changed    chan struct{} // closed and replaced when faults change
	random     *rand.Rand
	lastID     uint64
	numbered   int // connections so far
	sessions   map[*session]struct{}
	accounts   map[string]*account
	usage      map[string]*usage
	log        submitLog
	violations []Violation
	stats      Stats
	rate       rateMeter
	accepted   acceptMeter
	tries      map[uint64]uint8
	queue      eventQueue
	pending    int // deliveries in queue, in accounts or unanswered
	serving    bool
	unknownDue int64
	floodDue   int64
	receipt    receipt // scratch space of queueNotices
}

// ErrServing is the error of Serve while another Serve of the same carrier runs.
var ErrServing = errors.New("carriersim: already serving")

// New makes a carrier and starts nothing; Serve does.
func New(o Options) *Carrier {
	o = o.withDefaults()
	seed := o.Seed
	c := &Carrier{
		opts: o, epoch: time.Now(), kick: make(chan struct{}, 1),
		changed:  make(chan struct{}),
		sessions: map[*session]struct{}{}, accounts: map[string]*account{}, usage: map[string]*usage{},
		tries:    map[uint64]uint8{},
		accepted: acceptMeter{times: make([]int64, max(o.TPS, 0))},
	}
	if seed == 0 {
		seed = uint64(c.epoch.UnixMicro())
		c.lastID = seed
	} else {
		c.lastID = 2_684_354_560 + seed%1_000_000*1_000_000_000
	}
	if o.FirstID > 0 {
		c.lastID = o.FirstID - 1
	}
	c.random = rand.New(rand.NewPCG(seed, 0))
	c.log.init(o.MaxLog)
	c.stats.Refused = map[Status]uint64{}
	c.setFaults(o.Faults)
	return c
}

// Name returns the carrier's name, as in Options.
func (c *Carrier) Name() string { return c.opts.Name }

// Serve accepts connections on ln until ctx is done or ln fails, and closes ln. When it
// returns, all connections are closed and all its goroutines have ended; waiting
// receipts are kept for the next Serve. For SMPP over TLS use a listener of crypto/tls.
func (c *Carrier) Serve(ctx context.Context, ln net.Listener) error {
	c.mu.Lock()
	if c.serving {
		c.mu.Unlock()
		return ErrServing
	}
	c.serving = true
	c.mu.Unlock()

	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		c.DropAll()
		running.Wait()
		c.mu.Lock()
		c.serving = false
		c.mu.Unlock()
	}()
	running.Go(func() { c.scheduler(ctx) })
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	for {
		conn, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case err != nil:
			var failed net.Error
			if errors.As(err, &failed) && failed.Timeout() {
				continue
			}
			_ = ln.Close()
			return fmt.Errorf("accepting connections of %s: %w", c.opts.Name, err)
		}
		if s := c.open(conn); s != nil {
			running.Go(s.write)
			running.Go(s.read)
		}
	}
}

// open registers a connection, or closes it when connections are refused.
func (c *Carrier) open(conn net.Conn) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Connections++
	if c.faults.RefuseConnections || len(c.sessions) >= 4*c.opts.MaxSessions {
		_ = conn.Close()
		return nil
	}
	c.numbered++
	s := newSession(c, conn, c.numbered)
	c.sessions[s] = struct{}{}
	return s
}

// clock returns the monotonic time since the carrier was made.
func (c *Carrier) clock() int64 { return int64(time.Since(c.epoch)) }

func (c *Carrier) wall(at int64) time.Time { return c.epoch.Add(time.Duration(at)) }

// wake makes the scheduler check its queue.
func (c *Carrier) wake() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// Faults changes the faults while the carrier runs. change gets a copy of the current
// faults and must not call methods of the carrier.
func (c *Carrier) Faults(change func(*Faults)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.faults
	change(&next)
	c.setFaults(next)
}

// CurrentFaults returns the current faults.
func (c *Carrier) CurrentFaults() Faults {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults
}

func (c *Carrier) setFaults(f Faults) {
	c.faults = f
	c.halfOpen.Store(f.HalfOpen)
	c.stopReading.Store(f.StopReading)
	close(c.changed)
	c.changed = make(chan struct{})
	c.wake()
}

// all lists the sessions, bound or not.
func (c *Carrier) all() []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*session, 0, len(c.sessions))
	for s := range c.sessions {
		list = append(list, s)
	}
	return list
}

// DropAll closes every connection without unbind.
func (c *Carrier) DropAll() {
	for _, s := range c.all() {
		s.drop(false)
	}
}

// ResetAll sends RST on every connection.
func (c *Carrier) ResetAll() {
	for _, s := range c.all() {
		s.drop(true)
	}
}

// Unbind sends unbind on every bound session, and closes each after its unbind_resp or
// after 2 s.
func (c *Carrier) Unbind() {
	c.mu.Lock()
	var bound []*session
	for s := range c.sessions {
		if s.mode != 0 {
			c.unbind(s)
			bound = append(bound, s)
		}
	}
	c.mu.Unlock()
	for _, s := range bound {
		s.flush()
	}
}

// unbind unbinds a session; the caller holds c.mu.
func (c *Carrier) unbind(s *session) {
	c.leave(s)
	s.unbindUntil = c.clock() + int64(2*time.Second)
	s.request(cmdUnbind)
}

// SendRaw writes bytes unchanged on every connection.
func (c *Carrier) SendRaw(raw []byte) {
	for _, s := range c.all() {
		s.send(raw)
		s.flush()
	}
}

// violate records a protocol violation; the caller holds c.mu.
func (c *Carrier) violate(s *session, h header, status Status, text string) {
	c.stats.Violations++
	if len(c.violations) >= 1000 {
		c.violations = append(c.violations[:0], c.violations[500:]...)
	}
	c.violations = append(c.violations, Violation{
		At: time.Now(), Session: s.number, Sequence: h.seq, Command: commandName(h.command), Status: status, Text: text,
	})
}

// Violations returns the last 500 to 1,000 protocol violations, in order; Stats counts
// all.
func (c *Carrier) Violations() []Violation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Violation(nil), c.violations...)
}

// Reset deletes submits, messages, violations and counts. Sessions, waiting receipts
// and faults stay.
func (c *Carrier) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.init(c.opts.MaxLog)
	c.violations = nil
	c.stats = Stats{Refused: map[Status]uint64{}}
	c.rate = rateMeter{}
	clear(c.usage)
	clear(c.tries)
}

// Stats returns the current counts.
func (c *Carrier) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Carrier, s.ReceiptsWaiting, s.Peak = c.opts.Name, c.pending, c.rate.peak
	s.Refused = make(map[Status]uint64, len(c.stats.Refused))
	for status, n := range c.stats.Refused {
		s.Refused[status] = n
	}
	for session := range c.sessions {
		if session.mode != 0 {
			s.Sessions++
		}
	}
	return s
}
