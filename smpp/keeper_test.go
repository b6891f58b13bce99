package smpp

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipeCarrier hands out the carrier's ends of in-memory connections, so that
// time can be the test's.
type pipeCarrier struct {
	t     *testing.T
	conns chan net.Conn
	mu    sync.Mutex
	at    []time.Time
}

// dials returns when the link dialled.
func (c *pipeCarrier) dials() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.at)
}

// pipeBind returns a Bind that dials a pipeCarrier. It must be called in a
// synctest bubble.
func pipeBind(t *testing.T, change func(*Options)) (*Bind, *pipeCarrier) {
	t.Helper()
	o := options("carrier:2775")
	if change != nil {
		change(&o)
	}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c := &pipeCarrier{t: t, conns: make(chan net.Conn, 100)}
	b.dial = func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		c.mu.Lock()
		c.at = append(c.at, time.Now())
		c.mu.Unlock()
		c.conns <- theirs
		return ours, nil
	}
	return b, c
}

func (c *pipeCarrier) accept() *peer {
	conn := <-c.conns
	return newPeer(c.t, conn)
}

// start runs the link within the bubble; the function it returns stops it.
func start(t *testing.T, b *Bind) func() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// serve answers on the peer's connection with handle until it ends.
func (p *peer) serve(handle func(packet)) *sync.WaitGroup {
	var serving sync.WaitGroup
	serving.Go(func() {
		_ = p.conn.SetReadDeadline(time.Time{})
		for {
			got, err := p.receive()
			if err != nil {
				return
			}
			handle(got)
		}
	})
	return &serving
}

// polite answers what every carrier answers.
func (p *peer) polite(got packet) {
	switch got.command {
	case rawUnbind, rawEnquire, 1, 2, 9:
		p.send(got.command|0x80000000, 0, got.sequence)
	}
}

// rule carriers 9.15: after EnquireLink of silence one enquire_link goes out, however short
// the interval; answered, the next one comes after the next silence.
func TestEnquireLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := pipeBind(t, func(o *Options) { o.EnquireLink = time.Second })
		stop := start(t, b)
		p := c.accept()
		p.acceptBind()
		bound := time.Now()
		var at []time.Duration
		serving := p.serve(func(got packet) {
			if got.command == rawEnquire {
				at = append(at, time.Since(bound))
			}
			p.polite(got)
		})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(at) < 4 || len(at) > 5 || at[0] < time.Second || at[0] > 1200*time.Millisecond {
			t.Errorf("enquire_link at %v", at)
		}
		if n := binds(t, b); n != 1 {
			t.Errorf("%v binds", n)
		}
		stop()
		serving.Wait()
	})
}

// A half-open peer is found within EnquireLink + EnquireTimeout (and a sweep);
// its unanswered submit ends as NoAnswer. Defaults: under 45 s.
func TestHalfOpenPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := pipeBind(t, nil)
		stop := start(t, b)
		p := c.accept()
		p.acceptBind()
		bound := time.Now()
		var enquiries int
		serving := p.serve(func(got packet) {
			if got.command == rawEnquire {
				enquiries++
			}
		})
		waitBound(t, b)
		results := make(chan Result, 2)
		if err := b.Submit(context.Background(), sample(), func(r Result) { results <- r }); err != nil {
			t.Fatal(err)
		}
		r := <-results
		if r.Outcome != NoAnswer {
			t.Errorf("got %+v", r)
		}
		if d := time.Since(bound); d < 40*time.Second || d > 45*time.Second {
			t.Errorf("found after %s", d)
		}
		serving.Wait()
		if enquiries != 1 {
			t.Errorf("%d enquire_link, want one outstanding at most", enquiries)
		}
		stop()
	})
}

// Any octet counts as life: a peer that never answers enquire_link but talks is
// kept.
func TestAnyOctetIsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := pipeBind(t, func(o *Options) { o.EnquireLink, o.EnquireTimeout = 10*time.Second, 5*time.Second })
		stop := start(t, b)
		p := c.accept()
		p.acceptBind()
		waitBound(t, b)
		enquiries := 0
		serving := p.serve(func(got packet) {
			if got.command == rawEnquire {
				enquiries++
			}
			if got.command == rawUnbind {
				p.polite(got)
			}
		})
		for range 12 {
			time.Sleep(12 * time.Second)
			p.send(rawDeliver, 0, 1, deliverBody(4, 0, receiptText)...)
		}
		if s := b.Snapshot(); binds(t, b) != 1 || s.State != Bound {
			t.Errorf("%+v", s)
		}
		synctest.Wait()
		if enquiries < 10 {
			t.Errorf("%d enquire_link", enquiries)
		}
		stop()
		serving.Wait()
	})
}

// rule carriers 9.5: a wrong password is tried once in five minutes, no more.
func TestRejectedCredentialsAreNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := pipeBind(t, nil)
		stop := start(t, b)
		for range 3 {
			p := c.accept()
			bind := p.expect(9)
			p.send(0x80000009, 0x0E, bind.sequence)
			p.expectClose()
			synctest.Wait()
			if s := b.Snapshot(); s.State != Down || s.LastError == "" {
				t.Errorf("%+v", s)
			}
		}
		stop()
		dials := c.dials()
		for i := range len(dials) - 1 {
			if d := dials[i+1].Sub(dials[i]); d < 5*time.Minute {
				t.Errorf("attempt %d came after %s", i+1, d)
			}
		}
	})
}

// A carrier that drops every bind is called at growing, jittered intervals, and
// again quickly after a bind that held.
func TestReconnectTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := pipeBind(t, nil)
		stop := start(t, b)
		for range 12 {
			p := c.accept()
			p.acceptBind()
			_ = p.conn.Close()
		}
		dials := c.dials()
		for i := range 11 {
			d := dials[i+1].Sub(dials[i])
			if d < backoffBase/10 || d > min(time.Second<<min(i, 10), backoffMost)+time.Second {
				t.Errorf("attempt %d came after %s", i+1, d)
			}
		}
		if total := dials[11].Sub(dials[0]); total < 20*time.Second {
			t.Errorf("12 attempts in %s", total)
		}
		p := c.accept()
		p.acceptBind()
		serving := p.serve(p.polite)
		time.Sleep(2*time.Minute + 5*time.Second) // between two enquire_link
		_ = p.conn.Close()
		serving.Wait()
		lost := time.Now()
		p = c.accept()
		if d := time.Since(lost); d > time.Second {
			t.Errorf("reconnected %s after a stable bind", d)
		}
		_ = p.conn.Close()
		stop()
	})
}

// A PDU that begins and does not go on ends the session, though octets came.
func TestStalledPDU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := pipeBind(t, nil)
		stop := start(t, b)
		p := c.accept()
		p.acceptBind()
		waitBound(t, b)
		began := time.Now()
		p.write(encodeRaw(packet{rawDeliver, 0, 1, deliverBody(4, 0, receiptText)})[:40])
		p.expectClose()
		if d := time.Since(began); d > 11*time.Second {
			t.Errorf("closed after %s", d)
		}
		stop()
	})
}

// givenUp submits to a carrier that answers no submit_sm, in a session whose
// UnknownHold is far shorter than the time in which a dead peer is found out.
func givenUp(t *testing.T, deaf bool) {
	synctest.Test(t, func(t *testing.T) {
		b, c := pipeBind(t, func(o *Options) {
			o.Window, o.UnknownHold, o.ResponseTimeout = 10, 5*time.Second, time.Second
			o.EnquireLink, o.EnquireTimeout = 30*time.Second, 10*time.Second
		})
		stop := start(t, b)
		p := c.accept()
		p.acceptBind()
		waitBound(t, b)
		var mu sync.Mutex
		seen := 0
		serving := p.serve(func(got packet) {
			if got.command == rawSubmit {
				mu.Lock()
				seen++
				mu.Unlock()
			} else if !deaf {
				p.polite(got)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		var submitting sync.WaitGroup
		var outcomes [Accepted + 1]int
		submitting.Go(func() {
			for b.Submit(ctx, sample(), func(r Result) {
				mu.Lock()
				outcomes[r.Outcome]++
				mu.Unlock()
			}) == nil {
			}
		})
		time.Sleep(13 * time.Second) // two holds, and a bit
		synctest.Wait()
		mu.Lock()
		switch {
		case deaf && (seen != 10 || outcomes[NoAnswer] != 0):
			t.Errorf("into a dead session went %d submit_sm, %d given up", seen, outcomes[NoAnswer])
		case !deaf && (seen != 30 || outcomes[NoAnswer] != 20):
			t.Errorf("over a session that lives went %d submit_sm, %d given up", seen, outcomes[NoAnswer])
		}
		mu.Unlock()
		cancel()
		submitting.Wait()
		_ = p.conn.Close()
		stop()
		serving.Wait()
	})
}
