package smpp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the wait for anything that must come.
const patience = 20 * time.Second

// packet is a PDU as the tests' raw carrier sees it. The carrier does not use this
// package's codec.
type packet struct {
	command, status, sequence uint32
	body                      []byte
}

// peer is the carrier's end of one connection.
type peer struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
	mu   sync.Mutex
}

func newPeer(t testing.TB, conn net.Conn) *peer {
	return &peer{t: t, conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
}

func encodeRaw(p packet) []byte {
	b := make([]byte, 16, 16+len(p.body))
	binary.BigEndian.PutUint32(b[0:], uint32(16+len(p.body)))
	binary.BigEndian.PutUint32(b[4:], p.command)
	binary.BigEndian.PutUint32(b[8:], p.status)
	binary.BigEndian.PutUint32(b[12:], p.sequence)
	return append(b, p.body...)
}

// receive returns the next PDU, or the stream's error.
func (p *peer) receive() (packet, error) {
	var head [16]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		return packet{}, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 16 || n > 100_000 {
		return packet{}, errors.New("carrier read an impossible length")
	}
	body := make([]byte, n-16)
	if _, err := io.ReadFull(p.r, body); err != nil {
		return packet{}, err
	}
	return packet{
		binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:]),
		binary.BigEndian.Uint32(head[12:]), body,
	}, nil
}

// expect returns the next PDU, which must have this command.
func (p *peer) expect(command uint32) packet {
	p.t.Helper()
	got := p.next()
	if got.command != command {
		p.t.Fatalf("carrier got command %#x (status %#x, sequence %d), want %#x", got.command, got.status, got.sequence,
			command)
	}
	return got
}

func (p *peer) next() packet {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(patience))
	got, err := p.receive()
	if err != nil {
		p.t.Fatalf("carrier reading: %v", err)
	}
	return got
}

// silent checks that nothing arrives for d.
func (p *peer) silent(d time.Duration) {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(d))
	got, err := p.receive()
	if err == nil {
		p.t.Fatalf("carrier got command %#x, want silence", got.command)
	}
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		p.t.Fatalf("carrier reading: %v, want silence", err)
	}
}

// expectClose reads until the link closes the connection.
func (p *peer) expectClose() {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		_, err := p.receive()
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			p.t.Fatal("the link did not hang up")
		}
		if err != nil {
			return
		}
	}
}

func (p *peer) send(command, status, sequence uint32, body ...byte) {
	p.t.Helper()
	p.write(encodeRaw(packet{command, status, sequence, body}))
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.conn.SetWriteDeadline(time.Now().Add(patience))
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatalf("carrier writing: %v", err)
	}
}

// acceptBind answers the next PDU, a bind, and returns it.
func (p *peer) acceptBind() packet {
	p.t.Helper()
	got := p.next()
	switch got.command {
	case 1, 2, 9:
	default:
		p.t.Fatalf("carrier got command %#x, want a bind", got.command)
	}
	p.send(got.command|0x80000000, 0, got.sequence, 's', 'i', 'm', 0)
	return got
}

// accepted answers a submit_sm with ESME_ROK and the id.
func (p *peer) accepted(submit packet, id string) {
	p.t.Helper()
	p.send(0x80000004, 0, submit.sequence, append([]byte(id), 0)...)
}

// carrier listens on loopback and hands out connections.
type carrier struct {
	t  testing.TB
	ln net.Listener
}

func newCarrier(t testing.TB) *carrier {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return &carrier{t: t, ln: ln}
}

func (c *carrier) accept() *peer {
	c.t.Helper()
	_ = c.ln.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	conn, err := c.ln.Accept()
	if err != nil {
		c.t.Fatalf("no connection came: %v", err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	return newPeer(c.t, conn)
}

// bound accepts a connection and its bind.
func (c *carrier) bound() *peer {
	c.t.Helper()
	p := c.accept()
	p.acceptBind()
	return p
}

// options suit most tests.
func options(address string) Options {
	return Options{
		Carrier: "testel", Name: "testel-1",
		Account: Account{Addresses: []string{address}, SystemID: "intumwa", Password: "secret"},
		Deliver: func(d *Delivery) { d.Respond(StatusOK) },
		// Most tests end with a silent carrier.
		DrainTimeout: 100 * time.Millisecond, UnbindTimeout: 100 * time.Millisecond,
		Metrics: NewMetrics(prometheus.NewRegistry()),
	}
}

// run starts a Bind and returns it with a function that stops it; the test's cleanup also
// stops it.
func run(t testing.TB, o Options) (*Bind, func()) {
	t.Helper()
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b, runLink(t, b)
}

func runLink(t testing.TB, b *Bind) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	stop := func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

func waitBound(t testing.TB, b *Bind) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.WaitBound(ctx); err != nil {
		t.Fatalf("not bound: %v (%+v)", err, b.Snapshot())
	}
}

// until polls a condition until it holds.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// sample is a typical submit_sm.
func sample() *Submit {
	return &Submit{
		SourceTON: 5, Source: "INTUMWA", DestTON: 1, DestNPI: 1, Dest: "25779000000",
		RegisteredDelivery: 1, ShortMessage: bytes.Repeat([]byte("a"), 153),
	}
}

// submit submits the sample and returns the channel of its result.
func submit(t testing.TB, b *Bind) <-chan Result {
	t.Helper()
	results := make(chan Result, 2) // room for a second result, which would be a defect
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Submit(ctx, sample(), func(r Result) { results <- r }); err != nil {
		t.Fatalf("Submit: %v", err)
	}
	return results
}

func result(t testing.TB, results <-chan Result) Result {
	t.Helper()
	select {
	case r := <-results:
		return r
	case <-time.After(patience):
		t.Fatal("no result came")
		return Result{}
	}
}
