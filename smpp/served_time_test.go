package smpp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// timed is a Peer over a pipe, with synthetic time and the usual times.
type timed struct {
	*peer
	ours    *Peer
	ended   chan error
	request chan *Request
	stop    context.CancelFunc
}

// pipePeer serves one end of a pipe. Call it in a synctest bubble.
func pipePeer(t *testing.T, change func(*Serving)) *timed {
	ours, theirs := net.Pipe()
	c := &timed{peer: newPeer(t, theirs), ended: make(chan error, 1), request: make(chan *Request, 10)}
	opts := Serving{SystemID: "INTUMWA", Login: func(context.Context, *Peer, Login) (Admission, Status) {
		return Admission{Request: func(r *Request) { c.request <- r }}, StatusOK
	}}
	if change != nil {
		change(&opts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.ours = NewPeer(ours, &opts)
	go func() { c.ended <- c.ours.Run(ctx) }()
	return c
}

func (c *timed) bind() {
	c.send(rawTransceiver, 0, 1, bindBody("acme", "secret", 0x34)...)
	c.expect(rawTransceiver | 0x80000000)
}

// drip writes a PDU one byte each 600 ms until the connection ends: its header takes 9.6 s.
func (c *timed) drip(pdu []byte) {
	for _, b := range pdu {
		_ = c.conn.SetWriteDeadline(time.Time{})
		if _, err := c.conn.Write([]byte{b}); err != nil {
			return
		}
		time.Sleep(600 * time.Millisecond)
	}
}

// TestBindTime: the bind has 30 s in all, whatever comes in that time, also while Login decides.
func TestBindTime(t *testing.T) {
	long := bindBody("acme", "secret", 0x34)
	for name, act := range map[string]func(*timed){
		"silence": func(*timed) {},
		"enquire_link again and again": func(c *timed) {
			for range 3 {
				time.Sleep(9 * time.Second)
				c.send(rawEnquire, 0, 1)
				c.expect(rawEnquireResp)
			}
		},
		"a slow login": func(c *timed) { c.send(rawTransceiver, 0, 1, long...) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				c := pipePeer(t, func(o *Serving) {
					o.Login = func(ctx context.Context, _ *Peer, _ Login) (Admission, Status) {
						<-ctx.Done()
						return Admission{}, StatusOK
					}
				})
				act(c)
				if err := <-c.ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != 30*time.Second {
					t.Errorf("%v after %s", err, time.Since(began))
				}
			})
		})
	}
}

// TestDrippedPDU: a PDU has 10 s in all, before and behind the bind.
func TestDrippedPDU(t *testing.T) {
	for _, bound := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := pipePeer(t, nil)
			if bound {
				c.bind()
			}
			began := time.Now()
			c.drip(encodeRaw(packet{rawTransceiver, 0, 2, bindBody("acme", "secret", 0x34)}))
			if err := <-c.ended; !errors.Is(err, errStalled) || time.Since(began) > 11*time.Second {
				t.Errorf("bound %v: %v after %s", bound, err, time.Since(began))
			}
		})
	}
}

// TestInactivity: a client that only answers our enquire_link is unbound after 300 s; one that sends its own is not,
// nor one whose request we have not answered.
func TestInactivity(t *testing.T) {
	for name, c := range map[string]struct {
		own, open bool
	}{
		"it answers enquire_link": {}, "it sends enquire_link": {own: true}, "its request is open": {open: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := pipePeer(t, nil)
				client.bind()
				began := time.Now()
				if c.open {
					client.send(rawSubmit, 0, 2, deliverBody(0, 0, "x")...)
				}
				unbound := make(chan time.Duration, 1)
				serving := client.serve(func(p packet) {
					switch p.command {
					case rawEnquire:
						client.send(rawEnquireResp, 0, p.sequence)
					case rawUnbind:
						unbound <- time.Since(began)
						client.send(rawUnbindResp, 0, p.sequence)
					}
				})
				for range 80 {
					if c.own {
						client.send(rawEnquire, 0, 9)
					}
					time.Sleep(10 * time.Second)
					if len(unbound) > 0 {
						break
					}
				}
				if alive := c.own || c.open; alive != (len(unbound) == 0) {
					t.Errorf("unbound %v", len(unbound) > 0)
				} else if !alive {
					if at := <-unbound; at < 300*time.Second || at > 305*time.Second {
						t.Errorf("unbound after %s", at)
					}
					if err := <-client.ended; err != nil {
						t.Error(err)
					}
				}
				client.stop()
				if c.own || c.open {
					t.Log(<-client.ended)
				}
				serving.Wait()
			})
		})
	}
}

// TestServedEnquire: a silent client is asked after 30 s and dropped 10 s later.
func TestServedEnquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipePeer(t, nil)
		c.bind()
		began := time.Now()
		_ = c.conn.SetReadDeadline(time.Time{})
		if got, err := c.receive(); err != nil || got.command != rawEnquire || time.Since(began) > 32*time.Second {
			t.Errorf("%+v, %v after %s", got, err, time.Since(began))
		}
		if err := <-c.ended; err == nil || time.Since(began) > 43*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// TestServedWriteTimeout: a client that stops reading ends by the write deadline.
func TestServedWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipePeer(t, nil)
		c.bind()
		began := time.Now()
		results := make(chan Result, 1)
		if err := c.ours.Deliver(t.Context(), sample(), func(r Result) { results <- r }); err != nil {
			t.Fatal(err)
		}
		if r := <-results; r.Outcome != NotWritten || time.Since(began) > 11*time.Second {
			t.Errorf("%+v after %s", r, time.Since(began))
		}
		t.Log(<-c.ended)
	})
}

// TestUnansweredDeliver: a deliver_sm without a response ends as NoAnswer after 60 s, in a session that lives.
func TestUnansweredDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipePeer(t, nil)
		c.bind()
		began := time.Now()
		results := make(chan Result, 1)
		if err := c.ours.Deliver(t.Context(), sample(), func(r Result) { results <- r }); err != nil {
			t.Fatal(err)
		}
		serving := c.serve(func(p packet) {
			if p.command == rawEnquire {
				c.send(rawEnquireResp, 0, p.sequence)
			}
		})
		if r := <-results; r.Outcome != NoAnswer || time.Since(began) < 60*time.Second || time.Since(began) > 65*time.Second {
			t.Errorf("%+v after %s", r, time.Since(began))
		}
		if snap := c.ours.Snapshot(); snap.InFlight != 0 || snap.Bound.IsZero() {
			t.Errorf("%+v", snap)
		}
		c.stop()
		t.Log(<-c.ended)
		serving.Wait()
	})
}

// TestUnbindOnTime: Unbind ends the session in its time although the peer answers nothing, before and behind the bind.
func TestUnbindOnTime(t *testing.T) {
	for _, bound := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := pipePeer(t, nil)
			if bound {
				c.bind()
				c.send(rawSubmit, 0, 2, bytes.Clone(deliverBody(0, 0, "x"))...)
				<-c.request
			}
			serving := c.serve(func(packet) {})
			began := time.Now()
			c.ours.Unbind("the key is revoked", 150*time.Millisecond)
			t.Log(<-c.ended)
			if took := time.Since(began); took > 150*time.Millisecond {
				t.Errorf("bound %v: %s", bound, took)
			}
			serving.Wait()
		})
	}
}

// TestUselessPDUs: a client gets 1000 useless PDUs a second answered, however many it sends; accepted requests do not
// count.
func TestUselessPDUs(t *testing.T) {
	const n = 5000
	for name, c := range map[string]struct {
		pdu  packet
		took time.Duration
	}{
		"enquire_link": {packet{rawEnquire, 0, 1, nil}, (n/maxUseless - 2) * time.Second},
		"bind":         {packet{rawTransceiver, 0, 1, bindBody("acme", "secret", 0x34)}, (n/maxUseless - 2) * time.Second},
		"unknown":      {packet{0x77, 0, 1, nil}, (n/maxUseless - 2) * time.Second},
		"refused":      {packet{rawSubmit, 0, 1, deliverBody(0, 0, "NO")}, (n/maxUseless - 2) * time.Second},
		"accepted":     {packet{rawSubmit, 0, 1, deliverBody(0, 0, "x")}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := pipePeer(t, func(o *Serving) {
				o.Login = func(context.Context, *Peer, Login) (Admission, Status) {
					return Admission{Request: func(r *Request) {
						if string(r.ShortMessage) == "NO" {
							r.Refuse(StatusThrottled, "")
							return
						}
						r.Accept("1")
					}}, StatusOK
				}
			})
			client.bind()
			began := time.Now()
			for range n {
				client.write(encodeRaw(c.pdu))
				if got := client.next(); got.command&0x80000000 == 0 {
					t.Fatalf("%s: %+v", name, got)
				}
			}
			if took := time.Since(began); took < c.took || took > c.took+2*time.Second {
				t.Errorf("%s: %s, want %s", name, took, c.took)
			}
			client.stop()
			client.expectClose()
			t.Log(<-client.ended)
		})
	}
}
