package smpp

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rule carriers 9.14: a carrier that breaks its connections at random under concurrent
// submits and deliveries: every submit ends exactly once, an accepted one never as
// NotWritten, and the window is never exceeded.
func TestRandomDisconnects(t *testing.T) {
	t.Parallel()
	const window = 20
	c := newCarrier(t)
	o := options(c.ln.Addr().String())
	o.Window = window
	o.Deliver = func(d *Delivery) { go d.Respond(StatusOK) }
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.retry.base, b.retry.most = 2*time.Millisecond, 10*time.Millisecond
	stop := runLink(t, b)

	var seen sync.Map // the texts that the carrier read
	var most atomic.Int64
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := c.ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				breakAtRandom(newPeer(quiet{t}, conn), &seen, &most)
			})
		}
	})

	ctx, cancel := context.WithTimeout(context.Background(), patience) // a busy machine binds seldom
	defer cancel()
	ending := time.AfterFunc(2*time.Second, func() {
		for ctx.Err() == nil && binds(t, b) < 10 {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	})
	defer ending.Stop()
	var calls, refused, settled atomic.Int64
	var outcomes [Accepted + 1]atomic.Int64
	var submitters sync.WaitGroup
	for g := range 8 {
		submitters.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				m := sample()
				m.ShortMessage = []byte{byte(g), byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}
				text := string(m.ShortMessage)
				var once atomic.Bool
				calls.Add(1)
				err := b.Submit(ctx, m, func(r Result) {
					if once.Swap(true) {
						t.Error("settled twice")
					}
					if _, read := seen.Load(text); read && r.Outcome == NotWritten {
						t.Error("the carrier has what was called not written")
					} else if !read && r.Outcome == Accepted {
						t.Error("accepted what the carrier never read")
					}
					outcomes[r.Outcome].Add(1)
					settled.Add(1)
				})
				if err != nil {
					refused.Add(1)
					if errors.Is(err, ErrNotBound) {
						_ = b.WaitBound(ctx)
					}
				}
			}
		})
	}
	submitters.Wait()
	stop()
	_ = c.ln.Close()
	serving.Wait()
	if calls.Load() != settled.Load()+refused.Load() {
		t.Errorf("%d submits, %d settled, %d refused", calls.Load(), settled.Load(), refused.Load())
	}
	if most.Load() > window {
		t.Errorf("%d unanswered at the carrier, window %d", most.Load(), window)
	}
	s := b.Snapshot()
	t.Logf("%v binds, %d accepted, %d rejected, %d no answer, %d not written, %d refused", binds(t, b),
		outcomes[Accepted].Load(), outcomes[Rejected].Load(), outcomes[NoAnswer].Load(), outcomes[NotWritten].Load(),
		refused.Load())
	if s.InFlight != 0 || s.Waiting != 0 || s.Deliveries != 0 || binds(t, b) < 10 || outcomes[Accepted].Load() == 0 {
		t.Errorf("%+v", s)
	}
}

// quiet is a testing.TB whose peer may fail, because its connections are meant to break.
type quiet struct{ testing.TB }

func (quiet) Helper()               {}
func (quiet) Fatalf(string, ...any) { panic(errBroken) }

var errBroken = errors.New("broken")

// breakAtRandom is a carrier that binds, answers out of order, delivers, and breaks the
// connection at some point.
func breakAtRandom(p *peer, seen *sync.Map, most *atomic.Int64) {
	defer func() {
		if v := recover(); v != nil && v != errBroken { //nolint:errorlint // the same value
			panic(v)
		}
	}()
	p.acceptBind()
	var open []packet
	for left := rand.IntN(500); ; left-- {
		got := p.next()
		switch got.command {
		case rawSubmit:
			body := got.body
			seen.Store(string(body[len(body)-5:]), true)
			open = append(open, got)
			if n := int64(len(open)); n > most.Load() {
				most.Store(n)
			}
		default:
			p.polite(got)
		}
		if len(open) > 0 && rand.IntN(3) > 0 {
			i := rand.IntN(len(open))
			if rand.IntN(10) == 0 {
				p.send(rawSubmitResp, 0x58, open[i].sequence)
			} else {
				p.accepted(open[i], "id")
			}
			open = append(open[:i], open[i+1:]...)
		}
		for len(open) >= 15 {
			p.accepted(open[0], "id")
			open = open[1:]
		}
		if rand.IntN(10) == 0 {
			p.send(rawDeliver, 0, rand.Uint32(), deliverBody(4, 0, receiptText)...)
		}
		if left > 0 {
			continue
		}
		switch rand.IntN(12) {
		case 0:
			p.send(rawUnbind, 0, 1)
			for _, submit := range open {
				p.accepted(submit, "id")
			}
			for {
				got := p.next()
				if got.command == rawUnbindResp {
					return
				}
				if got.command == rawSubmit {
					p.send(rawSubmitResp, 0x08, got.sequence)
				}
			}
		case 1, 2, 3:
			p.write([]byte("HTTP/1.1 500\r\n\r\n"))
		case 4, 5, 6:
			p.write(encodeRaw(packet{rawDeliver, 0, 1, deliverBody(4, 0, receiptText)})[:30])
		}
		return
	}
}
