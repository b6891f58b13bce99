package settling

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/messages"
)

// TestGather: how long answers and receipts wait for more.
func TestGather(t *testing.T) {
	const ms = time.Millisecond
	answer := func(free int) func(*Settler) {
		at := &core.InFlight{Slots: core.NewSlots(10)}
		at.Slots.Give(free - 10)
		return func(s *Settler) { s.Take(core.Result{Message: at}) }
	}
	receipt := func(s *Settler) { s.Receive(Arrival{}) }
	for name, c := range map[string]struct {
		comes  func(*Settler)
		every  time.Duration
		times  int
		before func(*Settler)
		waits  time.Duration
		lot    int
	}{
		"one receipt":                      {receipt, 0, 1, nil, gatherGap, 1},
		"one answer, the window has room":  {answer(5), 0, 1, nil, gatherGap, 1},
		"one answer, the window has none":  {answer(4), 0, 1, nil, 0, 1},
		"they keep coming":                 {receipt, 6 * ms, 60, nil, gatherMost, 9},
		"they come seldom":                 {receipt, gatherGap + ms, 2, nil, gatherGap, 1},
		"many":                             {receipt, 0, 200, nil, 0, 200},
		"a late answer":                    {func(s *Settler) { s.TakeLate(LateAnswer{}) }, 0, 1, nil, 0, 1},
		"what is given back":               {func(s *Settler) { s.PutBack([]messages.Claim{{}}) }, 0, 1, nil, 0, 1},
		"the carrier waits for our answer": {receipt, 0, 1, waitsForAnswers, 0, 1},
		"it waited once": {receipt, 0, 1, func(s *Settler) {
			waitsForAnswers(s)
			time.Sleep(lingerPause)
		}, gatherGap, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewSettler(nil, nil)
				if c.before != nil {
					c.before(s)
				}
				came := make(chan struct{})
				go func() {
					defer close(came)
					for range c.times {
						c.comes(s)
						time.Sleep(c.every)
					}
				}()
				<-s.wake
				synctest.Wait()
				start := time.Now()
				s.gather(t.Context())
				if waited := time.Since(start); waited != c.waits {
					t.Errorf("it waits %v, want %v", waited, c.waits)
				}
				w := s.Grab()
				if w.Size() != c.lot {
					t.Errorf("%d are settled together, want %d", w.Size(), c.lot)
				}
				<-came
			})
		})
	}
}

// waitsForAnswers simulates a carrier that delivers each receipt only after the
// answer to the previous one.
func waitsForAnswers(s *Settler) {
	for range lingerTries {
		s.Receive(Arrival{})
		<-s.wake
		s.gather(context.Background())
		s.Grab()
	}
}

// TestGatherBesideAnswers: a flow of answers does not delay a single receipt.
func TestGatherBesideAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSettler(nil, nil)
		at := &core.InFlight{Slots: core.NewSlots(100)}
		came := make(chan struct{})
		go func() {
			defer close(came)
			for range 50 {
				s.Take(core.Result{Message: at})
				time.Sleep(3 * time.Millisecond)
			}
		}()
		defer func() { <-came }()
		s.Receive(Arrival{})
		<-s.wake
		start := time.Now()
		s.gather(t.Context())
		if waited := time.Since(start); waited != gatherGap {
			t.Errorf("it waits %v, want %v", waited, gatherGap)
		}
	})
}

// TestGatherFewAtATime: a carrier that delivers a few receipts at a time, each time after
// the answers to the last, is not delayed either.
func TestGatherFewAtATime(t *testing.T) {
	for _, few := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			s := NewSettler(nil, nil)
			start := time.Now()
			for range 100 {
				for range few {
					s.Receive(Arrival{})
				}
				<-s.wake
				s.gather(t.Context())
				s.Grab()
				time.Sleep(time.Millisecond)
			}
			if most := (lingerTries + 1) * gatherGap; time.Since(start)-100*time.Millisecond > most {
				t.Errorf("%d at a time: 100 settlements take %v, want %v at most", few, time.Since(start),
					most+100*time.Millisecond)
			}
		})
	}
}

// TestGatherEvenFlow: receipts at an even rate, equally many per wait, still wait for each other.
func TestGatherEvenFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSettler(nil, nil)
		came := make(chan struct{})
		go func() {
			defer close(came)
			for range 300 {
				s.Receive(Arrival{})
				time.Sleep(6 * time.Millisecond)
			}
		}()
		for range 3 * lingerTries {
			<-s.wake
			start := time.Now()
			s.gather(t.Context())
			if waited := time.Since(start); waited != gatherMost {
				t.Fatalf("it waits %v, want %v", waited, gatherMost)
			}
			s.Grab()
		}
		<-came
	})
}
