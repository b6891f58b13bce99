package smpp

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// attemptsOf has a bind reach nobody, and returns when it tried.
func attemptsOf(b *Bind) func() []time.Time {
	var mu sync.Mutex
	var at []time.Time
	b.dial = func(context.Context) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Now())
		return nil, errors.New("no route to host")
	}
	return func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at
	}
}

// TestRetryGoesOn: a bind goes on with another's attempts: the next one when it was due there,
// and the pauses from where they were. The Run after that begins as any does.
func TestRetryGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _ := pipeBind(t, nil)
		tried := attemptsOf(first)
		stop := start(t, first)
		for first.Failing().Retry.In < time.Second { // a pause that can be seen
			time.Sleep(20 * time.Second)
			synctest.Wait()
		}
		f := first.Failing()
		if f.Down < 20*time.Second || f.Up != 0 || f.Trying || f.Failed != len(tried()) || f.Retry.Failures != f.Failed || f.Failed < 5 || f.Retry.In > backoffMost {
			t.Fatalf("after %d attempts: %+v", len(tried()), f)
		}
		stop()
		if f := first.Failing(); f.Down != 0 || f.Trying {
			t.Errorf("a bind that does not run: %+v", f)
		}

		second, _ := pipeBind(t, func(o *Options) { o.Retry = f.Retry })
		tried = attemptsOf(second)
		began := time.Now()
		stop = start(t, second)
		synctest.Wait()
		if s := second.Failing(); s.Failed != 0 || s.Trying || s.Retry != f.Retry {
			t.Errorf("it begins with %+v, not with %+v", s, f.Retry)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if wait := tried()[0].Sub(began); wait != f.Retry.In {
			t.Errorf("its first attempt is after %v, want %v", wait, f.Retry.In)
		}
		if s := second.Failing(); s.Retry.Failures != f.Retry.Failures+len(tried()) {
			t.Errorf("%d failures after %d and %d more", s.Retry.Failures, f.Retry.Failures, len(tried()))
		}
		stop()
		before := len(tried())
		stop = start(t, second)
		synctest.Wait()
		if s := second.Failing(); len(tried()) != before+1 || s.Retry.Failures != 1 || s.Retry.In > backoffBase {
			t.Errorf("the next Run begins with %+v", s)
		}
		stop()
	})
}

// TestAgain: whoever may hold up attempts that follow a failed one holds up them only, and for
// as long as he does the next is due.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		b, _ := pipeBind(t, func(o *Options) {
			o.Again = func(ctx context.Context) {
				select {
				case <-hold:
				case <-ctx.Done():
				}
			}
		})
		tried := attemptsOf(b)
		stop := start(t, b)
		time.Sleep(time.Minute)
		synctest.Wait()
		if f := b.Failing(); len(tried()) != 1 || f.Trying || f.Failed != 1 || f.Retry.In != 0 {
			t.Errorf("%d attempts, %+v", len(tried()), f)
		}
		close(hold)
		synctest.Wait()
		if len(tried()) != 2 {
			t.Errorf("%d attempts once they may go on", len(tried()))
		}
		stop()
	})
}

// TestFailingIsUnreached: a bind that is up does not fail, one that was lost has failed no
// attempt yet, and one that the carrier refuses has reached it.
func TestFailingIsUnreached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := pipeBind(t, nil)
		stop := start(t, b)
		synctest.Wait()
		if f := b.Failing(); !f.Trying || f.Failed != 0 {
			t.Errorf("while it binds: %+v", f)
		}
		p := c.accept()
		p.acceptBind()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if f := b.Failing(); f.Up != 5*time.Second || f.Down != 0 || f.Trying {
			t.Errorf("bound: %+v", f)
		}
		_ = p.conn.Close()
		synctest.Wait()
		if f := b.Failing(); f.Up != 0 || f.Failed != 0 || f.Trying || f.Retry.Failures != 1 {
			t.Errorf("lost: %+v", f)
		}
		for i := range 3 {
			p = c.accept()
			bind := p.expect(9)
			time.Sleep(time.Second)
			p.send(0x80000009, uint32(StatusAlreadyBound), bind.sequence)
			synctest.Wait()
			if f := b.Failing(); f.Failed != 0 || f.Down != 0 || f.Retry.Failures != i+2 || f.Retry.In < alreadyBoundHold {
				t.Errorf("refused: %+v", f)
			}
		}
		stop()
	})
}
