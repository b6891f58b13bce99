package smpp

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// rule carriers 9.13: Run ends with a drained window and answered deliveries, then
// unbind, unbind_resp, close.
func TestGracefulEnd(t *testing.T) {
	t.Parallel()
	var deliveries []*Delivery
	handed := make(chan struct{}, 10)
	b, p, stop := newBound(t, func(o *Options) {
		o.DrainTimeout, o.UnbindTimeout = patience, patience
		o.Deliver = func(d *Delivery) { deliveries = append(deliveries, d); handed <- struct{}{} }
	})
	s := b.submitting.Load()
	first, second := submit(t, b), submit(t, b)
	one, two := p.expect(rawSubmit), p.expect(rawSubmit)
	p.send(rawDeliver, 0, 1, deliverBody(4, 0, receiptText)...)
	<-handed
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	until(t, "draining", func() bool { return b.Snapshot().State == Down })
	if err := b.Submit(context.Background(), sample(), nil); !errors.Is(err, ErrNotBound) {
		t.Errorf("Submit while draining: %v", err)
	}
	p.send(rawEnquire, 0, 7)
	p.expect(rawEnquireResp)
	p.accepted(one, "1")
	p.silent(30 * time.Millisecond) // one is still in flight
	p.send(rawDeliver, 0, 2, deliverBody(4, 0, receiptText)...)
	<-handed
	p.accepted(two, "2")
	if r := result(t, first); r.Outcome != Accepted {
		t.Errorf("first: %+v", r)
	}
	if r := result(t, second); r.Outcome != Accepted {
		t.Errorf("second: %+v", r)
	}
	until(t, "it refuses new deliveries", s.refusing.Load)
	p.silent(30 * time.Millisecond) // the deliveries are not answered yet
	p.send(rawDeliver, 0, 3, deliverBody(4, 0, receiptText)...)
	if got := p.expect(rawDeliverResp); got.sequence != 3 || got.status != 0x14 {
		t.Errorf("a new delivery: %+v", got)
	}
	for _, d := range deliveries {
		d.Respond(StatusOK)
		if got := p.expect(rawDeliverResp); got.status != 0 {
			t.Errorf("got %+v", got)
		}
	}
	unbind := p.expect(rawUnbind)
	select {
	case <-stopped:
		t.Error("Run did not wait for unbind_resp")
	case <-time.After(30 * time.Millisecond):
	}
	p.send(rawUnbindResp, 0, unbind.sequence)
	p.expectClose()
	<-stopped
	if s := b.Snapshot(); s.State != Down || s.SessionsBound != 0 || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}

// rule carriers 9.13: a silent carrier delays Run by at most the drain and the unbind
// timeout. Unanswered submits end as NoAnswer, those held back by the pace as NotWritten.
func TestEndWithSilentCarrier(t *testing.T) {
	t.Parallel()
	b, p, stop := newBound(t, func(o *Options) {
		o.DrainTimeout, o.UnbindTimeout = 50*time.Millisecond, time.Second // time for a busy machine to write the unbind
		o.TPS = 0.1
	})
	written, held := submit(t, b), submit(t, b)
	p.expect(rawSubmit)
	began := time.Now()
	stop()
	if d := time.Since(began); d < 1050*time.Millisecond || d > 20*time.Second {
		t.Errorf("took %s", d)
	}
	if r := result(t, written); r.Outcome != NoAnswer {
		t.Errorf("written: %+v", r)
	}
	if r := result(t, held); r.Outcome != NotWritten {
		t.Errorf("held: %+v", r)
	}
	p.expect(rawUnbind)
	if err := b.Submit(context.Background(), sample(), nil); !errors.Is(err, ErrNotBound) {
		t.Errorf("Submit after Run: %v", err)
	}
}

// TestEndWithin: EndWithin shortens the drain and the unbind of a silent carrier, also when they are under way, and the
// answer to the carrier's own unbind. The end of the next Run takes its time again.
func TestEndWithin(t *testing.T) {
	const within = 1500 * time.Millisecond
	for name, begin := range map[string]func(p *peer, end func()){
		"before the end":                        func(*peer, func()) {},
		"while it drains":                       func(_ *peer, end func()) { end(); time.Sleep(time.Second) },
		"while it unbinds":                      func(_ *peer, end func()) { end(); time.Sleep(time.Minute + time.Second) },
		"while it ends by the carrier's unbind": func(p *peer, _ func()) { p.send(rawUnbind, 0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, c := pipeBind(t, func(o *Options) {
					o.DrainTimeout, o.UnbindTimeout, o.EnquireLink = time.Minute, time.Minute, time.Hour
				})
				// bound runs the bind with an unanswered submit.
				bound := func(ctx context.Context) (ended *sync.WaitGroup, p *peer, results <-chan Result) {
					ended = new(sync.WaitGroup)
					ended.Go(func() { _ = b.Run(ctx) })
					p = c.accept()
					p.acceptBind()
					waitBound(t, b)
					results = submit(t, b)
					p.expect(rawSubmit)
					p.serve(func(packet) {})
					return ended, p, results
				}
				ctx, end := context.WithCancel(t.Context())
				ended, p, results := bound(ctx)
				begin(p, end)
				synctest.Wait()
				at := time.Now()
				end()
				b.EndWithin(within)
				ended.Wait()
				if d := time.Since(at); d > within {
					t.Errorf("it took %s", d)
				}
				if r := result(t, results); r.Outcome != NoAnswer {
					t.Errorf("%+v", r)
				}
				ctx, end = context.WithCancel(t.Context())
				ended, _, _ = bound(ctx)
				at = time.Now()
				end()
				ended.Wait()
				if d := time.Since(at); d != 2*time.Minute {
					t.Errorf("the next end took %s", d)
				}
			})
		})
	}
}

func TestRunAgain(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	b, stop := run(t, options(c.ln.Addr().String()))
	p := c.bound()
	waitBound(t, b)
	if err := b.Run(context.Background()); err == nil {
		t.Error("a second Run beside the first")
	}
	serving := p.serve(p.polite)
	stop()
	serving.Wait()
	stop = runLink(t, b)
	p = c.bound()
	waitBound(t, b)
	results := submit(t, b)
	p.accepted(p.expect(rawSubmit), "again")
	result(t, results)
	serving = p.serve(p.polite)
	stop()
	serving.Wait()
}

// A transmitter and a receiver are bound only together, submit on one and receive on the
// other, and bind anew when either is lost.
func TestTransmitterAndReceiver(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"transmitter", "receiver"} {
		t.Run(lost, func(t *testing.T) {
			c := newCarrier(t)
			o := options(c.ln.Addr().String())
			o.Mode, o.UnbindTimeout = TransmitterReceiver, patience
			l, stop := run(t, o)
			bindPair := func() (transmitter, receiver *peer) {
				transmitter = c.accept()
				if got := transmitter.acceptBind(); got.command != 2 {
					t.Fatalf("first bind is %#x", got.command)
				}
				receiver = c.accept()
				bind := receiver.expect(1)
				if s := l.Snapshot(); s.State != Connecting || s.SessionsBound != 1 || s.Sessions != 2 {
					t.Errorf("half bound: %+v", s)
				}
				transmitter.send(rawEnquire, 0, 1)
				transmitter.expect(rawEnquireResp)
				receiver.send(0x80000001, 0, bind.sequence, 0)
				waitBound(t, l)
				return transmitter, receiver
			}
			transmitter, receiver := bindPair()
			results := submit(t, l)
			transmitter.accepted(transmitter.expect(rawSubmit), "1")
			result(t, results)
			receiver.send(rawDeliver, 0, 1, deliverBody(4, 0, receiptText)...)
			receiver.expect(rawDeliverResp)
			gone, other := transmitter, receiver
			if lost == "receiver" {
				gone, other = receiver, transmitter
			}
			_ = gone.conn.Close()
			unbind := other.expect(rawUnbind)
			other.send(rawUnbindResp, 0, unbind.sequence)
			other.expectClose()
			transmitter, receiver = bindPair()
			a, b := transmitter.serve(transmitter.polite), receiver.serve(receiver.polite)
			stop()
			a.Wait()
			b.Wait()
		})
	}
}

func TestReceiverRefused(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	o := options(c.ln.Addr().String())
	o.Mode, o.UnbindTimeout = TransmitterReceiver, patience
	b, _ := run(t, o)
	transmitter := c.accept()
	transmitter.acceptBind()
	receiver := c.accept()
	receiver.send(0x80000001, 0x08, receiver.expect(1).sequence)
	unbind := transmitter.expect(rawUnbind)
	transmitter.send(rawUnbindResp, 0, unbind.sequence)
	transmitter.expectClose()
	until(t, "down", func() bool { return b.Snapshot().LastError != "" && b.Snapshot().SessionsBound == 0 })
	c.accept().expect(2) // and again
}
