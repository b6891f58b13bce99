package smpp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// newBound returns a Bind that is bound to a scripted carrier.
func newBound(t *testing.T, change func(*Options)) (*Bind, *peer, func()) {
	t.Helper()
	c := newCarrier(t)
	o := options(c.ln.Addr().String())
	if change != nil {
		change(&o)
	}
	b, stop := run(t, o)
	p := c.bound()
	waitBound(t, b)
	return b, p, stop
}

func TestSubmitRejected(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, nil)
	results := submit(t, b)
	p.send(rawSubmitResp, 0x58, p.expect(rawSubmit).sequence) // an error response may lack its body
	r := result(t, results)
	var refused *StatusError
	if r.Outcome != Rejected || r.Status != StatusThrottled || !errors.As(r.Err, &refused) {
		t.Fatalf("got %+v", r)
	}
	if n := b.Snapshot().Totals.Throttled; n != 1 {
		t.Errorf("throttled %d, want 1", n)
	}
}

// rule carriers 9.1: a deliver_sm may have the sequence_number of a pending submit_sm; each
// gets its own response.
func TestDeliverWithSequenceOfPendingSubmit(t *testing.T) {
	t.Parallel()
	got := make(chan *Delivery, 1)
	b, p, _ := newBound(t, func(o *Options) { o.Deliver = func(d *Delivery) { got <- d } })
	results := submit(t, b)
	sent := p.expect(rawSubmit)
	p.send(rawDeliver, 0, sent.sequence, deliverBody(0x04, 0, receiptText)...)
	d := <-got
	if d.Receipt == nil || d.Receipt.ID != "0123456789" {
		t.Errorf("receipt %+v", d.Receipt)
	}
	select {
	case r := <-results:
		t.Fatalf("a deliver_sm settled the submit: %+v", r)
	default:
	}
	d.Respond(StatusOK)
	if resp := p.expect(rawDeliverResp); resp.sequence != sent.sequence || resp.status != 0 {
		t.Errorf("got %+v", resp)
	}
	p.accepted(sent, "1")
	if r := result(t, results); r.Outcome != Accepted {
		t.Errorf("got %+v", r)
	}
}

// rule carriers 9.2: an unknown PDU is answered, and the session continues.
func TestUnknownAndUndecodablePDUs(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, nil)
	for _, c := range []struct {
		name             string
		command          uint32
		body             []byte
		answer, answered uint32
	}{
		{"unknown request", 0x00000077, nil, rawGenericNack, 0x03},
		{"submit_sm from a carrier", rawSubmit, []byte{0}, rawGenericNack, 0x03},
		{"query_sm", 0x03, []byte{0}, rawGenericNack, 0x03},
		{"truncated deliver_sm", rawDeliver, []byte("\x00\x01"), rawDeliverResp, 0x02},
		{"sm_length beyond the body", rawDeliver, append(deliverBody(0, 0, "")[:33], 200), rawDeliverResp, 0x02},
		{"truncated TLV", rawDeliver, append(deliverBody(0, 0, ""), 0, 5, 0, 9), rawDeliverResp, 0xC0},
		{"truncated TLV behind a text", rawDeliver, append(deliverBody(0, 0, "x"), 0, 5, 0, 9), rawDeliverResp, 0},
		{"data_sm", rawData, dataBody(0, 0), rawDataResp, 0},
		{"deliver_sm, UDHI without UDH", rawDeliver, deliverBody(0x44, 0, "x"), rawDeliverResp, 0},
		{"enquire_link", rawEnquire, nil, rawEnquireResp, 0},
	} {
		p.send(c.command, 0, 4711, c.body...)
		got := p.next()
		if got.command != c.answer || got.status != c.answered || got.sequence != 4711 {
			t.Errorf("%s: answered command %#x status %#x sequence %d", c.name, got.command, got.status, got.sequence)
		}
	}
	// The session sends nothing after an unexpected response or a PDU that has no response.
	p.send(0x80000077, 0, 1)
	p.send(0x102, 0, 2, dataBody(0, 0)...)
	p.send(0x0B, 0, 3, 'x', 0, 'y', 0)
	p.send(rawGenericNack, 8, 99999)
	p.send(rawSubmitResp, 0, 99999, 'x', 0)
	p.send(rawEnquire, 0, 5)
	p.expect(rawEnquireResp)
	results := submit(t, b)
	p.accepted(p.expect(rawSubmit), "1")
	if r := result(t, results); r.Outcome != Accepted {
		t.Errorf("got %+v", r)
	}
}

// rule carriers 9.3: a peer that stops reading ends the session by the write deadline. Neither
// the submits nor Run hang.
func TestPeerStopsReading(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	o := options(c.ln.Addr().String())
	o.Window = 100_000
	o.WriteTimeout = 200 * time.Millisecond
	o.DrainTimeout = 300 * time.Millisecond
	b, stop := run(t, o)
	p := c.accept()
	_ = p.conn.(*net.TCPConn).SetReadBuffer(4096)
	p.acceptBind()
	waitBound(t, b)
	var results sync.Map
	var sent, settled int64
	var mu sync.Mutex
	for {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		id := sent
		err := b.Submit(ctx, sample(), func(r Result) {
			if _, twice := results.LoadOrStore(id, r.Outcome); twice {
				t.Errorf("submit %d settled twice", id)
			}
			mu.Lock()
			settled++
			mu.Unlock()
		})
		cancel()
		if err != nil {
			if !errors.Is(err, ErrNotBound) {
				t.Errorf("Submit: %v", err)
			}
			break
		}
		sent++
	}
	until(t, "a reason", func() bool { return strings.Contains(b.Snapshot().LastError, "stopped reading") })
	stop()
	mu.Lock()
	defer mu.Unlock()
	if settled != sent || sent == 0 {
		t.Errorf("%d submits, %d settled", sent, settled)
	}
	outcomes := map[Outcome]int{}
	results.Range(func(_, o any) bool { outcomes[o.(Outcome)]++; return true })
	if outcomes[NoAnswer] == 0 || outcomes[NotWritten] == 0 || outcomes[Accepted]+outcomes[Rejected] > 0 {
		t.Errorf("outcomes %v: want some written and some not", outcomes)
	}
}

// A peer that floods requests and reads no responses is throttled: waiting responses are
// bounded, and the write deadline ends the session.
func TestPeerFloodsWithoutReading(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, func(o *Options) {
		o.WriteTimeout = 300 * time.Millisecond
		o.BindTimeout = patience // the next bind, which nobody answers, does not replace the reason
	})
	s := b.submitting.Load()
	flood := bytes.Repeat(encodeRaw(packet{rawEnquire, 0, 1, nil}), 4096)
	_ = p.conn.SetWriteDeadline(time.Now().Add(patience))
	most := 0
	for !s.ended() {
		if _, err := p.conn.Write(flood); err != nil {
			break
		}
		s.mu.Lock()
		most = max(most, len(s.control))
		s.mu.Unlock()
	}
	until(t, "a reason", func() bool { return strings.Contains(b.Snapshot().LastError, "stopped reading") })
	if most > maxControl+headerLength {
		t.Errorf("%d bytes of answers waited", most)
	}
}

// rule carriers 9.6: a disconnect with 50 in flight ends each exactly once, as NoAnswer;
// submits without a slot are refused.
func TestDisconnectWithWindowInFlight(t *testing.T) {
	t.Parallel()
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprintf("reset=%v", reset), func(t *testing.T) {
			b, p, stop := newBound(t, func(o *Options) { o.Window = 50 })
			var all []<-chan Result
			for range 50 {
				all = append(all, submit(t, b))
			}
			refused := make(chan error, 1)
			go func() {
				refused <- b.Submit(context.Background(), sample(), func(Result) { t.Error("done of a refused submit") })
			}()
			for range 50 {
				p.expect(rawSubmit)
			}
			until(t, "one waits", func() bool { return b.Snapshot().Waiting == 1 })
			if reset {
				_ = p.conn.(*net.TCPConn).SetLinger(0)
			}
			_ = p.conn.Close()
			for _, results := range all {
				if r := result(t, results); r.Outcome != NoAnswer || r.Err == nil {
					t.Errorf("got %+v", r)
				}
			}
			if err := <-refused; !errors.Is(err, ErrNotBound) {
				t.Errorf("waiting submit: %v", err)
			}
			stop()
			for _, results := range all {
				if len(results) > 0 {
					t.Error("settled twice")
				}
			}
		})
	}
}

// rule carriers 9.7: a response after the response timeout still settles its submit, which
// kept its window slot.
func TestLateResponse(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, func(o *Options) {
		o.ResponseTimeout = 30 * time.Millisecond
		o.Window = 1
	})
	results := submit(t, b)
	sent := p.expect(rawSubmit)
	until(t, "overdue", func() bool { return b.Snapshot().Overdue == 1 })
	if s := b.Snapshot(); s.InFlight != 1 || s.State != Bound || len(results) != 0 {
		t.Fatalf("%+v: the slot must be kept and nothing reported", s)
	}
	p.accepted(sent, "late")
	if r := result(t, results); r.Outcome != Accepted || r.MessageID != "late" {
		t.Errorf("got %+v", r)
	}
	if s := b.Snapshot(); counted(t, b.metrics.late) != 1 || s.Overdue != 0 || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}

// GiveUp ends the given overdue submits and no others. A late response is reported once.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	late := make(chan Result, 2)
	b, p, _ := newBound(t, func(o *Options) {
		o.OnLate = func(key uint64, r Result) {
			if key != 7 {
				t.Errorf("key %d", key)
			}
			late <- r
		}
		o.ResponseTimeout = 30 * time.Millisecond
		o.Window = 2
	})
	results := make(chan Result, 2)
	m := sample()
	m.Key = 7
	if err := b.Submit(t.Context(), m, func(r Result) { results <- r }); err != nil {
		t.Fatal(err)
	}
	learnt := errors.New("learnt otherwise")
	sent := p.expect(rawSubmit)
	until(t, "overdue", func() bool { return slices.Equal(b.Overdue(), []uint64{7}) })
	b.GiveUp(learnt, 8)
	if s := b.Snapshot(); s.Overdue != 1 || len(results) != 0 {
		t.Fatalf("another's key ended it: %+v", s)
	}
	b.GiveUp(learnt, 8, 7)
	if r := <-results; r.Outcome != NoAnswer || !errors.Is(r.Err, learnt) {
		t.Errorf("got %+v", r)
	}
	if s := b.Snapshot(); s.Overdue != 0 || s.InFlight != 0 || counted(t, b.metrics.results[NoAnswer]) != 1 ||
		len(b.Overdue()) != 0 {
		t.Errorf("%+v", s)
	}
	p.accepted(sent, "late")
	if r := <-late; r.Outcome != Accepted || r.MessageID != "late" || r.Latency < 30*time.Millisecond {
		t.Errorf("the answer that came after all: %+v", r)
	}
	p.accepted(sent, "again")
	next := submit(t, b)
	p.accepted(p.expect(rawSubmit), "next")
	if r := result(t, next); r.MessageID != "next" || len(results) != 0 || len(late) != 0 {
		t.Errorf("%+v after a response to no request", r)
	}
	if s := b.Snapshot(); counted(t, b.metrics.late) != 1 || s.Totals.Accepted != 1 {
		t.Errorf("%+v", s.Totals)
	}
}

// rule carriers 9.9: a delivery is acknowledged only by its owner, once; a refusal is sent
// unchanged.
func TestRespond(t *testing.T) {
	t.Parallel()
	got := make(chan *Delivery, 1)
	_, p, _ := newBound(t, func(o *Options) { o.Deliver = func(d *Delivery) { got <- d } })
	p.send(rawDeliver, 0, 77, deliverBody(4, 0, receiptText)...)
	d := <-got
	p.silent(50 * time.Millisecond)
	d.Respond(StatusSysErr)
	d.Respond(StatusOK)
	if resp := p.expect(rawDeliverResp); resp.status != 8 || resp.sequence != 77 || string(resp.body) != "\x00" {
		t.Errorf("got %+v", resp)
	}
	p.silent(50 * time.Millisecond)
}

// rule carriers 9.10: the pace delays submits only.
func TestPaceDoesNotDelayControl(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, func(o *Options) { o.TPS = 0.05 })
	submit(t, b)
	submit(t, b) // waits 20 s for its token
	p.expect(rawSubmit)
	began := time.Now()
	for i := range uint32(20) {
		p.send(rawDeliver, 0, i, deliverBody(4, 0, receiptText)...)
		p.expect(rawDeliverResp)
	}
	p.send(rawEnquire, 0, 99)
	p.expect(rawEnquireResp)
	if d := time.Since(began); d > 15*time.Second {
		t.Errorf("20 answers took %s", d)
	}
}

// rule carriers 9.11: a full window makes Submit wait and is never exceeded.
func TestWindow(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, func(o *Options) { o.Window = 10 })
	const n = 50
	var done sync.WaitGroup
	done.Add(n)
	go func() {
		for range n {
			if err := b.Submit(context.Background(), sample(), func(Result) { done.Done() }); err != nil {
				t.Errorf("Submit: %v", err)
			}
		}
	}()
	var open []packet
	for range 10 {
		open = append(open, p.expect(rawSubmit))
	}
	p.silent(50 * time.Millisecond)
	for i := range n - 10 {
		p.accepted(open[i], fmt.Sprint(i))
		open = append(open, p.expect(rawSubmit))
	}
	p.silent(20 * time.Millisecond)
	for _, s := range open[n-10:] {
		p.accepted(s, "x")
	}
	done.Wait()
	for i, s := range open {
		if s.sequence != uint32(i)+2 { // the bind was 1
			t.Fatalf("submit %d has sequence %d", i, s.sequence)
		}
	}
}

func TestSetWindow(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, func(o *Options) { o.Window = 1 })
	submit(t, b)
	first := p.expect(rawSubmit)
	for range 3 {
		go func() { _ = b.Submit(context.Background(), sample(), func(Result) {}) }()
	}
	until(t, "three wait", func() bool { return b.Snapshot().Waiting == 3 })
	b.SetWindow(3)
	second, third := p.expect(rawSubmit), p.expect(rawSubmit)
	p.silent(30 * time.Millisecond)
	b.SetWindow(-5) // 1
	p.accepted(first, "1")
	p.accepted(second, "2")
	p.silent(30 * time.Millisecond)
	p.accepted(third, "3")
	p.accepted(p.expect(rawSubmit), "4")
	until(t, "empty", func() bool { return b.Snapshot().InFlight == 0 })
}

func TestSubmitContextEnds(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, func(o *Options) { o.Window = 1 })
	first := submit(t, b)
	sent := p.expect(rawSubmit)
	ctx, cancel := context.WithCancel(context.Background())
	refused := make(chan error, 1)
	go func() { refused <- b.Submit(ctx, sample(), func(Result) { t.Error("done of a refused submit") }) }()
	until(t, "one waits", func() bool { return b.Snapshot().Waiting == 1 })
	cancel()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	p.accepted(sent, "1")
	result(t, first)
	p.silent(30 * time.Millisecond)
}

func TestPause(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, func(o *Options) { o.Window = 1 })
	first := submit(t, b)
	sent := p.expect(rawSubmit)
	waiting := make(chan error, 1)
	go func() { waiting <- b.Submit(context.Background(), sample(), func(Result) {}) }()
	until(t, "one waits", func() bool { return b.Snapshot().Waiting == 1 })
	b.Pause()
	b.Pause()
	if state := b.Snapshot().State; state != Paused {
		t.Errorf("state %s", state)
	}
	if err := <-waiting; !errors.Is(err, ErrPaused) {
		t.Errorf("waiting submit: %v", err)
	}
	if err := b.Submit(context.Background(), sample(), func(Result) {}); !errors.Is(err, ErrPaused) {
		t.Errorf("Submit while paused: %v", err)
	}
	p.send(rawDeliver, 0, 9, deliverBody(4, 0, receiptText)...)
	p.expect(rawDeliverResp)
	p.accepted(sent, "1")
	result(t, first)
	b.Resume()
	waitBound(t, b)
	second := submit(t, b)
	p.accepted(p.expect(rawSubmit), "2")
	result(t, second)
	if s := b.Snapshot(); s.State != Bound || binds(t, b) != 1 {
		t.Errorf("bound anew: %s, %v binds", s.State, binds(t, b))
	}
}

// rule carriers 9.12: after the peer's unbind the session is drained, unbind_resp sent,
// and a new session bound.
func TestPeerUnbinds(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	o := options(c.ln.Addr().String())
	o.TPS = 0.5
	b, _ := run(t, o)
	p := c.bound()
	waitBound(t, b)
	written, queued := submit(t, b), submit(t, b)
	sent := p.expect(rawSubmit)
	p.send(rawUnbind, 0, 5)
	if r := result(t, queued); r.Outcome != NotWritten {
		t.Errorf("queued: %+v", r)
	}
	p.send(rawEnquire, 0, 6)
	p.expect(rawEnquireResp)
	p.accepted(sent, "in time")
	if r := result(t, written); r.Outcome != Accepted {
		t.Errorf("written: %+v", r)
	}
	if resp := p.expect(rawUnbindResp); resp.sequence != 5 {
		t.Errorf("got %+v", resp)
	}
	_ = p.conn.Close()
	c.bound()
	waitBound(t, b)
}

// rule carriers 9.16: a generic_nack is a refusal with its status.
func TestGenericNack(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, nil)
	results := submit(t, b)
	p.send(rawGenericNack, 0x03, p.expect(rawSubmit).sequence)
	if r := result(t, results); r.Outcome != Rejected || r.Status != StatusInvCmdID {
		t.Errorf("got %+v", r)
	}
	// Even with ESME_ROK it is not an acceptance, and nobody is told that its status is ESME_ROK.
	results = submit(t, b)
	p.send(rawGenericNack, 0, p.expect(rawSubmit).sequence)
	if r := result(t, results); r.Outcome != Rejected || r.Status != StatusUnknown || r.Err == nil {
		t.Errorf("got %+v", r)
	}
	// A nack for no request of ours, with a wrong length: the peer cannot parse our
	// stream.
	p.send(rawGenericNack, 0x02, 0)
	p.expectClose()
}

func TestResponseOfAnotherTypeSettlesNothing(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, nil)
	results := submit(t, b)
	sent := p.expect(rawSubmit)
	for _, command := range []uint32{rawDeliverResp, rawDataResp, 0x80000003, rawEnquireResp, 0x80000009} {
		p.send(command, 0, sent.sequence, 'x', 0)
	}
	p.send(rawEnquire, 0, 1)
	p.expect(rawEnquireResp)
	if len(results) != 0 {
		t.Fatalf("settled: %+v", <-results)
	}
	p.accepted(sent, "1")
	p.accepted(sent, "1") // a duplicate, of no submit_sm
	if r := result(t, results); r.Outcome != Accepted {
		t.Errorf("got %+v", r)
	}
	p.send(rawEnquire, 0, 2)
	p.expect(rawEnquireResp)
	if len(results) != 0 {
		t.Error("settled twice")
	}
}

// After ESME_RINVBNDSTS the carrier has dropped the session, so we bind again.
func TestNotBoundAtPeer(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	b, _ := run(t, options(c.ln.Addr().String()))
	p := c.bound()
	waitBound(t, b)
	results := submit(t, b)
	p.send(rawSubmitResp, 0x04, p.expect(rawSubmit).sequence)
	r := result(t, results)
	var refused *StatusError
	if r.Outcome != Rejected || !errors.As(r.Err, &refused) || refused.Status.Class() != ClassSession {
		t.Errorf("got %+v", r)
	}
	p.expectClose()
	c.bound()
	waitBound(t, b)
}

func TestMessageIDForms(t *testing.T) {
	t.Parallel()
	b, p, _ := newBound(t, nil)
	long := strings.Repeat("f", 64)
	for _, c := range []struct{ body, want string }{
		{"\x00", ""}, {"", ""}, {"7\x00", "7"}, {"no-nul", "no-nul"},
		{long + "\x00", long}, {"a\x00\x04\x28\x00\x01\x05", "a"}, {strings.Repeat("x", 300), ""},
	} {
		results := submit(t, b)
		p.send(rawSubmitResp, 0, p.expect(rawSubmit).sequence, []byte(c.body)...)
		if r := result(t, results); r.Outcome != Accepted || r.MessageID != c.want {
			t.Errorf("%q: got %+v", c.body, r)
		}
	}
}

func TestSequenceWrapsAndSkipsPending(t *testing.T) {
	s := &session{pending: map[uint32]*pending{1: {}, 2: {}}, sequence: maxSequence - 1}
	for _, want := range []uint32{maxSequence, 3, 4} {
		if got := s.nextSequenceLocked(); got != want {
			t.Errorf("sequence %#x, want %#x", got, want)
		}
	}
}
