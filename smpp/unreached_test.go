package smpp

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnreached: a bind that is up, just lost, or refused by the carrier has reached it;
// one whose attempts fail has not, since it was last up.
func TestUnreached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := pipeBind(t, nil)
		stop := start(t, b)
		p := c.accept()
		p.acceptBind()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if d := b.Unreached(); d != 0 {
			t.Errorf("bound: unreached for %v", d)
		}
		_ = p.conn.Close()
		for range 3 {
			p = c.accept()
			bind := p.expect(9)
			time.Sleep(time.Second)
			p.send(0x80000009, uint32(StatusAlreadyBound), bind.sequence)
			synctest.Wait()
			if d := b.Unreached(); d != 0 {
				t.Errorf("lost and refused: unreached for %v", d)
			}
		}
		stop()

		b, _ = pipeBind(t, nil)
		b.dial = func(context.Context, string) (net.Conn, error) { return nil, errors.New("no route to host") }
		stop = start(t, b)
		time.Sleep(time.Minute)
		synctest.Wait()
		if d := b.Unreached(); d != time.Minute {
			t.Errorf("without a route: unreached for %v", d)
		}
		stop()
		if d := b.Unreached(); d != 0 {
			t.Errorf("at its end: unreached for %v", d)
		}
	})
}
