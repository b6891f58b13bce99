package dispatcher

import (
	"context"
	"sync"
	"time"
)

// slots limits the segments that are out and not yet settled in the database to
// the window, so that a crash duplicates no more than that.
type slots struct {
	mu    sync.Mutex
	size  int // the window
	free  int
	since time.Time // when a slot was last freed, or the last free one was taken
	freed chan struct{}
	woken func() // called when slots come free; it must not block

	counting time.Time // the begin of the second that is counted
	rate     [2]int    // slots freed in it and in the one before
}

// stallAfter is the time without a freed slot after which a link counts as
// stalled: its carrier answers nothing, even if the link is bound.
const stallAfter = 2 * time.Second

// newSlots returns a window of n free slots.
func newSlots(n int) *slots {
	return &slots{size: n, free: n, freed: make(chan struct{}, 1), woken: func() {}}
}

// take waits for a slot and takes it. Only one caller may be in take or wait.
func (s *slots) take(ctx context.Context) error {
	for {
		if err := s.wait(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		free := s.free > 0
		if free {
			if s.free--; s.free == 0 {
				s.since = time.Now()
			}
		}
		s.mu.Unlock()
		if free {
			return nil
		}
	}
}

// wait waits until a slot is free, without taking it.
func (s *slots) wait(ctx context.Context) error {
	for {
		if s.left() > 0 {
			return nil
		}
		select {
		case <-s.freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// left returns the free slots, negative while more are in use than a smaller
// new window allows.
func (s *slots) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// scarce reports whether more than half of the window is in use.
func (s *slots) scarce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 2*s.free < s.size
}

// resize changes the window. If it shrinks, excess slots in use are freed
// before any can be taken.
func (s *slots) resize(size int) {
	s.mu.Lock()
	more := size - s.size
	s.size = size
	s.mu.Unlock()
	s.give(more)
}

// stalled reports whether no slot has come free for stallAfter.
func (s *slots) stalled(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free <= 0 && now.Sub(s.since) > stallAfter
}

// give frees n slots. It may be negative (resize).
func (s *slots) give(n int) {
	now := time.Now()
	s.mu.Lock()
	s.free += n
	s.since = now
	s.countLocked(now)
	s.rate[0] += max(n, 0)
	s.mu.Unlock()
	signal(s.freed)
	s.woken()
}

// countLocked begins another second when one is over.
func (s *slots) countLocked(now time.Time) {
	switch age := now.Sub(s.counting); {
	case age >= 2*time.Second:
		s.counting, s.rate = now, [2]int{}
	case age >= time.Second:
		s.counting, s.rate = s.counting.Add(time.Second), [2]int{0, s.rate[0]}
	}
}

// soon returns the slots that are free, and those that will come free within a time at the rate of late: none if the
// carrier answers nothing.
func (s *slots) soon(within time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked(time.Now())
	return max(s.free, 0) + int(float64(max(s.rate[0], s.rate[1]))*within.Seconds())
}
