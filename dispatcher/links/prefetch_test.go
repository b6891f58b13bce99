package links

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/internal/queue"
	"intumwa/messages/outbox"
)

func journeysOf(lane queue.Lane, n int) []*core.InFlight {
	list := make([]*core.InFlight, n)
	for i := range list {
		list[i] = &core.InFlight{Msg: &outbox.Claimed{ID: int64(i + 1), Lane: int(lane)}}
	}
	return list
}

// TestPrefetchFairness: single sends get most of the link, batches their share,
// and each lane keeps its order.
func TestPrefetchFairness(t *testing.T) {
	p := newPrefetch(1000)
	p.put(queue.Single, journeysOf(queue.Single, 90))
	p.put(queue.Batch, journeysOf(queue.Batch, 30))
	var last [2]int64
	singles, batches := 0, 0
	for range 120 {
		m, err := p.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if m.Msg.ID != last[m.Msg.Lane]+1 {
			t.Fatalf("lane %d: %d after %d", m.Msg.Lane, m.Msg.ID, last[m.Msg.Lane])
		}
		last[m.Msg.Lane] = m.Msg.ID
		if m.Msg.Lane == int(queue.Single) {
			singles++
		} else {
			batches++
		}
		if singles < 90 && batches != singles/singlesBeforeBatch && batches != (singles-1)/singlesBeforeBatch {
			t.Fatalf("%d batch messages after %d single ones", batches, singles)
		}
	}
	// Single sends before a batch came do not count for its share.
	p.put(queue.Single, journeysOf(queue.Single, 50))
	for range 20 {
		if _, err := p.next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.put(queue.Batch, journeysOf(queue.Batch, 1))
	for i := range singlesBeforeBatch + 1 {
		m, err := p.next(t.Context())
		if err != nil || (m.Msg.Lane == int(queue.Batch)) != (i == singlesBeforeBatch) {
			t.Errorf("message %d of lane %d, %v", i, m.Msg.Lane, err)
		}
	}
}

func TestPrefetchRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPrefetch(10)
		ctx, cancel := context.WithCancel(t.Context())
		if room, err := p.waitRoom(ctx, queue.Single); room != 10 || err != nil {
			t.Errorf("an empty prefetch has room for %d, %v", room, err)
		}
		p.put(queue.Single, journeysOf(queue.Single, 8))
		if room, err := p.waitRoom(ctx, queue.Batch); room != 10 || err != nil {
			t.Errorf("the other side has room for %d, %v", room, err)
		}
		got := make(chan int)
		wait := func() {
			room, err := p.waitRoom(ctx, queue.Single)
			if err != nil {
				room = -1
			}
			got <- room
		}
		go wait()
		for range 2 { // 8, 7, 6: still more than half full
			if _, err := p.next(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			select {
			case room := <-got:
				t.Fatalf("room for %d while more than half full", room)
			default:
			}
		}
		if _, err := p.next(ctx); err != nil {
			t.Fatal(err)
		}
		if room := <-got; room != 5 {
			t.Errorf("room for %d, want 5", room)
		}
		p.put(queue.Single, journeysOf(queue.Single, 5))
		go wait()
		synctest.Wait()
		if all := p.takeAll(); len(all) != 10 {
			t.Errorf("%d taken off", len(all))
		}
		if room := <-got; room != 10 {
			t.Errorf("room for %d, want 10", room)
		}
		p.put(queue.Single, journeysOf(queue.Single, 10))
		go wait()
		synctest.Wait()
		p.resize(40)
		if room := <-got; room != 30 {
			t.Errorf("room for %d in a larger prefetch, want 30", room)
		}
		p.put(queue.Single, journeysOf(queue.Single, 30))
		go wait()
		synctest.Wait()
		cancel()
		if room := <-got; room != -1 {
			t.Errorf("room for %d after the end", room)
		}
	})
}

// TestPrefetchSoon: while a carrier answers nothing, a link claims no more than its window has room for, of both lanes.
// It claims ahead what the carrier takes in a quarter of a second.
func TestPrefetchSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := core.NewSlots(10), newPrefetch(200)
		p.soon, s.Woken = func() int { return s.Soon(soonWithin) }, p.wake
		room := func(lane queue.Lane) int {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			n, _ := p.waitRoom(ctx, lane)
			return n
		}
		is := func(when string, single, batch int) {
			t.Helper()
			if n := room(queue.Single); n != single {
				t.Errorf("%s: room for %d single sends, want %d", when, n, single)
			}
			if n := room(queue.Batch); n != batch {
				t.Errorf("%s: room for %d of batches, want %d", when, n, batch)
			}
		}
		submit := func() {
			for p.Poll() != nil {
				if s.Left() > 0 {
					_ = s.Take(t.Context())
				}
			}
		}
		is("at first", 10, 10)
		p.put(queue.Single, journeysOf(queue.Single, 4))
		is("four are claimed", 6, 6)
		p.put(queue.Single, journeysOf(queue.Single, 6))
		submit()
		is("nothing is answered", 0, 0)
		time.Sleep(time.Minute)
		is("nothing is answered for long", 0, 0)
		woken := make(chan int)
		go func() { n, _ := p.waitRoom(t.Context(), queue.Single); woken <- n }()
		synctest.Wait()
		s.Give(2)
		if n := <-woken; n != 2 {
			t.Errorf("two are answered: room for %d", n)
		}
		p.put(queue.Single, journeysOf(queue.Single, 2))
		submit()
		for range 3 {
			time.Sleep(500 * time.Millisecond)
			s.Give(200)
			s.Give(-200)
		}
		is("400 a second", 100, 100)
		time.Sleep(2 * time.Second)
		is("no more", 0, 0)
	})
}

func TestPrefetchNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPrefetch(10)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error)
		go func() {
			_, err := p.next(ctx)
			got <- err
			_, err = p.next(ctx)
			got <- err
		}()
		synctest.Wait()
		p.put(queue.Batch, nil)
		p.put(queue.Batch, journeysOf(queue.Batch, 1))
		if err := <-got; err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestPrefetchSize(t *testing.T) {
	for _, c := range []struct {
		window int
		tps    float64
		want   int
	}{{10, 100, 25}, {10, 1, 1}, {10, 0, 20}, {100, 0, 200}, {1, 0, 20}, {1000, 0, 500}, {1, 1e6, 500}} {
		if got := prefetchSize(c.window, c.tps); got != c.want {
			t.Errorf("window %d, tps %v: %d, want %d", c.window, c.tps, got, c.want)
		}
	}
}

func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSlots(2)
		ctx, cancel := context.WithCancel(t.Context())
		taken := make(chan error, 10)
		go func() {
			for {
				err := s.Take(ctx)
				taken <- err
				if err != nil {
					return
				}
			}
		}()
		expect := func(n int) {
			t.Helper()
			synctest.Wait()
			if len(taken) != n {
				t.Fatalf("%d slots taken, want %d", len(taken), n)
			}
			for range n {
				if err := <-taken; err != nil {
					t.Fatal(err)
				}
			}
		}
		expect(2)
		s.Give(1)
		expect(1)
		s.Give(-2) // the window shrinks: segments in flight free it first
		expect(0)
		s.Give(2)
		expect(0)
		s.Give(3)
		expect(3)
		time.Sleep(time.Hour)
		expect(0)
		cancel()
		synctest.Wait()
		if err := <-taken; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
