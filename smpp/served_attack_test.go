package smpp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestServedLengths: an impossible length gets a generic_nack and ends the session; another protocol gets nothing.
func TestServedLengths(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	for _, n := range []uint32{0, 15, maxPDU + 1, 0x7FFFFFFF, 0xFFFFFFFF} {
		for _, bound := range []bool{false, true} {
			var p *peer
			if bound {
				p, _ = d.bindAs(rawTransceiver, 0x34)
			} else {
				p = d.connect()
			}
			p.write(append(rawLength(n), make([]byte, 50_000)...)) // it is not read, but does not reset the connection
			if got := p.expect(rawGenericNack); got.status != 2 || got.sequence != 0 {
				t.Errorf("length %d, bound %v: %+v", n, bound, got)
			}
			_ = p.conn.(*net.TCPConn).CloseWrite()
			p.expectClose()
			if err := d.end(); !errors.Is(err, errLength) {
				t.Errorf("length %d, bound %v: %v", n, bound, err)
			}
		}
	}
	p := d.connect()
	p.write([]byte("GET / HTTP/1.1\r\n\r\n"))
	_ = p.conn.SetReadDeadline(time.Now().Add(patience))
	if got, err := p.receive(); err == nil {
		t.Errorf("HTTP gets %+v", got)
	}
}

// TestHugeWindow: a client that does not wait for answers gets twice its window taken and the rest refused. Its session
// lives, and enquire_link is answered meanwhile.
func TestHugeWindow(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var taken []*Request
	d := newDoor(t, func(d *door) {
		d.window = 100_000 // MaxServedWindow
		d.request = func(r *Request) {
			mu.Lock()
			defer mu.Unlock()
			taken = append(taken, r)
		}
	})
	p, ours := d.bindAs(rawTransceiver, 0x34)
	const n, most = 1000, servedExcess * MaxServedWindow
	for i := range uint32(n) {
		p.send(rawSubmit, 0, i, deliverBody(0, 0, "x")...)
	}
	for i := range uint32(n - most) {
		if got := p.expect(rawSubmitResp); got.status != 0x58 || got.sequence != i+most {
			t.Fatalf("%+v", got)
		}
	}
	p.send(rawEnquire, 0, 1)
	p.expect(rawEnquireResp)
	mu.Lock()
	first := slices.Clone(taken)
	mu.Unlock()
	for _, r := range first {
		r.Accept("1")
	}
	for i := range uint32(most) {
		if got := p.expect(rawSubmitResp); got.status != 0 || got.sequence != i {
			t.Fatalf("%+v", got)
		}
	}
	p.send(rawSubmit, 0, 5000, deliverBody(0, 0, "x")...)
	until(t, "the next is taken", func() bool { return ours.Snapshot().Requests == 1 })
	if snap := ours.Snapshot(); snap.Window != MaxServedWindow || snap.Refusals[StatusThrottled] != n-most {
		t.Errorf("%+v", snap)
	}
}

// TestHugeTexts: the texts of unanswered requests are bounded in bytes.
func TestHugeTexts(t *testing.T) {
	t.Parallel()
	var held atomic.Int64
	d := newDoor(t, func(d *door) {
		d.window = MaxServedWindow
		d.request = func(r *Request) { held.Add(int64(len(r.ShortMessage))) }
	})
	p, ours := d.bindAs(rawTransceiver, 0x34)
	long := deliverBody(0, 0, "", TLV{TagMessagePayload, bytes.Repeat([]byte("x"), maxText)})
	const n = 100
	for i := range uint32(n) {
		p.send(rawSubmit, 0, i, long...)
	}
	p.send(rawEnquire, 0, 1)
	refused := 0
	for got := p.next(); got.command != rawEnquireResp; got = p.next() {
		if got.command != rawSubmitResp || got.status != 0x14 {
			t.Fatalf("%+v", got)
		}
		refused++
	}
	if h := held.Load(); h > unansweredBytes || h < unansweredBytes/2 || refused != n-int(h)/maxText {
		t.Errorf("%d bytes are held, %d refused", h, refused)
	}
	if got := counted(t, ours.metrics.refused); int(got) != refused {
		t.Errorf("%v refused", got)
	}
}

// TestServedFloods: a client that floods and reads nothing is slowed down or ended by the write deadline, and its
// waiting answers are bounded. Nobody else notices.
func TestServedFloods(t *testing.T) {
	t.Parallel()
	d := newDoor(t, func(d *door) { d.opts.WriteTimeout = 300 * time.Millisecond })
	other, _ := d.bindAs(rawTransceiver, 0x34)
	for name, pdu := range map[string]packet{
		"enquire_link": {rawEnquire, 0, 1, nil},
		"bind":         {rawTransceiver, 0, 1, bindBody("acme", "secret", 0x34)},
		"submit_sm":    {rawSubmit, 0, 1, deliverBody(0, 0, "x")},
		"query_sm":     {rawQuery, 0, 1, nil},
		"unknown":      {0x77, 0, 1, nil},
		"unbind":       {rawUnbind, 0, 1, nil},
	} {
		began := time.Now()
		p, ours := d.bindAs(rawTransceiver, 0x34)
		s := ours.session
		flood := bytes.Repeat(encodeRaw(pdu), 1000)
		_ = p.conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
		most := 0
		for !s.ended() {
			if _, err := p.conn.Write(flood); err != nil {
				break
			}
			s.mu.Lock()
			most = max(most, len(s.control))
			s.mu.Unlock()
		}
		_ = p.conn.Close()
		err := d.end()
		t.Logf("%s: %s, %v", name, time.Since(began), err)
		if err == nil && name != "unbind" {
			t.Errorf("%s: it was unbound", name)
		}
		if most > maxControl+servedExcess*MaxServedWindow*64 {
			t.Errorf("%s: %d bytes of answers waited", name, most)
		}
		other.send(rawEnquire, 0, 3)
		other.expect(rawEnquireResp)
	}
}

// TestFrozenClient: a client that never answers deliver_sm stops at its own window. One that reads nothing at all ends
// by the enquire_link.
func TestFrozenClient(t *testing.T) {
	t.Parallel()
	d := newDoor(t, func(d *door) {
		d.opts.Window = 5
		d.opts.ResponseTimeout = 2 * time.Second
		d.opts.EnquireLink, d.opts.EnquireTimeout = 4*time.Second, 4*time.Second
	})
	frozen, ours := d.bindAs(rawTransceiver, 0x34)
	var given, ended atomic.Int32
	settle := func(r Result) {
		switch {
		case r.Outcome == NoAnswer && errors.Is(r.Err, context.Canceled):
		case r.Outcome == NoAnswer:
			given.Add(1)
		}
		ended.Add(1)
	}
	for range 5 {
		if err := ours.Deliver(t.Context(), sample(), settle); err != nil {
			t.Fatal(err)
		}
		frozen.expect(rawDeliver)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	if err := ours.Deliver(short, sample(), settle); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beyond the window: %v", err)
	}
	cancel()
	began := time.Now()
	other, _ := d.bindAs(rawTransceiver, 0x34)
	other.send(rawSubmit, 0, 1, deliverBody(0, 0, "x")...)
	other.expect(rawSubmitResp)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("another client waited for %s", took)
	}
	// A sign of life frees the slots after ResponseTimeout: the results are NoAnswer.
	until(t, "the slots are free", func() bool {
		frozen.send(rawEnquire, 0, 1)
		time.Sleep(10 * time.Millisecond)
		return ended.Load() == 5
	})
	if err := ours.Deliver(t.Context(), sample(), settle); err != nil {
		t.Fatal(err)
	}
	until(t, "the silent session ends", func() bool { return ended.Load() == 6 })
	if given.Load() != 6 || counted(t, ours.metrics.enquireTimeouts) == 0 {
		t.Errorf("%d without an answer", given.Load())
	}
}

// TestLateAnswers: the response to a deliver_sm that was given up finds its key.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	d := newDoor(t, func(d *door) { d.opts.ResponseTimeout = 100 * time.Millisecond })
	p, ours := d.bindAs(rawTransceiver, 0x34)
	m := sample()
	m.Key = 7
	results := make(chan Result, 2)
	if err := ours.Deliver(t.Context(), m, func(r Result) { results <- r }); err != nil {
		t.Fatal(err)
	}
	sent := p.expect(rawDeliver)
	until(t, "given up", func() bool {
		p.send(rawEnquire, 0, 1)
		time.Sleep(10 * time.Millisecond)
		return len(results) == 1
	})
	p.send(rawDeliverResp, 0, sent.sequence, 0)
	if r := result(t, d.late); r.Outcome != Accepted {
		t.Errorf("%+v", r)
	}
}

// TestIdleSessionIsSmall: what many idle sessions take of the heap and the stacks.
func TestIdleSessionIsSmall(t *testing.T) {
	d := newDoor(t, nil)
	size := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	const n = 50
	before, goroutines := size(), runtime.NumGoroutine()
	for range n {
		conn, err := net.Dial("tcp", d.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = conn.Write(encodeRaw(packet{rawTransceiver, 0, 1, bindBody("acme", "secret", 0x34)}))
		<-d.peers
	}
	each, routines := (int64(size())-int64(before))/n, (runtime.NumGoroutine()-goroutines)/n
	t.Logf("%d bytes and %d goroutines a session", each, routines)
	if each > 96<<10 || routines > 4 {
		t.Errorf("%d bytes and %d goroutines a session", each, routines)
	}
}
