package smpp

import (
	"context"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipeCarrier hands out the carrier's ends of in-memory connections, for tests with
// synthetic time.
type pipeCarrier struct {
	t     *testing.T
	conns chan net.Conn
	mu    sync.Mutex
	at    []time.Time
}

// dials returns the times at which the link dialled.
func (c *pipeCarrier) dials() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.at)
}

// pipeBind returns a Bind that dials a pipeCarrier. Call it in a synctest bubble.
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
	b.dial = func(context.Context, string) (net.Conn, error) {
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

// start runs the link within the bubble and returns a function that stops it.
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

// serve handles the peer's connection until it ends.
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

// polite answers requests as every carrier does.
func (p *peer) polite(got packet) {
	switch got.command {
	case rawUnbind, rawEnquire, 1, 2, 9:
		p.send(got.command|0x80000000, 0, got.sequence)
	}
}

// rule carriers 9.15: one enquire_link goes out after EnquireLink of silence, however short
// the interval. After its response, the next one follows the next silence.
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

// A half-open peer is detected within EnquireLink + EnquireTimeout (and a sweep), by
// default under 45 s; its unanswered submit ends as NoAnswer.
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

// Any byte is a sign of life: a peer that sends data but never answers enquire_link is
// kept.
func TestAnyByteIsSignOfLife(t *testing.T) {
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

// rule carriers 9.5: a wrong password is tried at most once in five minutes.
func TestRejectedCredentialsWait(t *testing.T) {
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

// After dropped binds, the attempts have growing, jittered intervals; after a bind that
// held, they are quick again.
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

// TestSilentBind: a carrier that takes connections, does not answer the bind and comes back after three minutes is
// bound within 12 s. A bind whose connection takes long to come is the same.
func TestSilentBind(t *testing.T) {
	for name, dial := range map[string]time.Duration{"silent to the bind": 0,
		"silent to the connection": DefaultDialTimeout} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, c := pipeBind(t, nil)
				pipe, back := b.dial, time.Now().Add(3*time.Minute)
				b.dial = func(ctx context.Context, address string) (net.Conn, error) {
					if dial > 0 && time.Now().Before(back) {
						time.Sleep(dial)
						return nil, os.ErrDeadlineExceeded
					}
					return pipe(ctx, address)
				}
				stop := start(t, b)
				for {
					p := c.accept()
					p.expect(9)
					if time.Now().Before(back) {
						p.serve(func(packet) {}).Wait() // until the link hangs up
						continue
					}
					p.send(0x80000009, 0, 1, 0)
					break
				}
				waitBound(t, b)
				if d := time.Since(back); d > 12*time.Second {
					t.Errorf("bound %s after it came back", d)
				}
				stop()
			})
		})
	}
}

// A PDU that begins and does not continue ends the session, although bytes came.
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

// givenUp submits to a carrier that answers no submit_sm, with an UnknownHold far shorter
// than the detection of a dead peer.
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
		time.Sleep(13 * time.Second) // more than two holds
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
