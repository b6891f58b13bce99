package core

import (
	"context"
	"sync"
	"time"
)

// Slots limits the segments that are out and not yet settled in the database to
// the window, so that a crash duplicates no more than that.
type Slots struct {
	mu    sync.Mutex
	size  int // the window
	free  int
	since time.Time // when a slot was last freed, or the last free one was taken
	freed chan struct{}
	Woken func() // called when slots come free; it must not block

	counting time.Time // the begin of the second that is counted
	rate     [2]int    // slots freed in it and in the one before
}

// StallAfter is the time without a freed slot after which a link counts as
// stalled: its carrier answers nothing, even if the link is bound.
const StallAfter = 2 * time.Second

// NewSlots returns a window of n free slots.
func NewSlots(n int) *Slots {
	return &Slots{size: n, free: n, freed: make(chan struct{}, 1), Woken: func() {}}
}

// Take waits for a slot and takes it. Only one caller may be in take or wait.
func (s *Slots) Take(ctx context.Context) error {
	for {
		if err := s.Wait(ctx); err != nil {
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

// Wait waits until a slot is free, without taking it.
func (s *Slots) Wait(ctx context.Context) error {
	for {
		if s.Left() > 0 {
			return nil
		}
		select {
		case <-s.freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Left returns the free slots, negative while more are in use than a smaller
// new window allows.
func (s *Slots) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// Scarce reports whether more than half of the window is in use.
func (s *Slots) Scarce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 2*s.free < s.size
}

// Resize changes the window. If it shrinks, excess slots in use are freed
// before any can be taken.
func (s *Slots) Resize(size int) {
	s.mu.Lock()
	more := size - s.size
	s.size = size
	s.mu.Unlock()
	s.Give(more)
}

// Stalled reports whether no slot has come free for StallAfter.
func (s *Slots) Stalled(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free <= 0 && now.Sub(s.since) > StallAfter
}

// Give frees n slots. It may be negative (resize).
func (s *Slots) Give(n int) {
	now := time.Now()
	s.mu.Lock()
	s.free += n
	s.since = now
	s.countLocked(now)
	s.rate[0] += max(n, 0)
	s.mu.Unlock()
	Signal(s.freed)
	s.Woken()
}

// countLocked begins another second when one is over.
func (s *Slots) countLocked(now time.Time) {
	switch age := now.Sub(s.counting); {
	case age >= 2*time.Second:
		s.counting, s.rate = now, [2]int{}
	case age >= time.Second:
		s.counting, s.rate = s.counting.Add(time.Second), [2]int{0, s.rate[0]}
	}
}

// Soon returns the slots that are free, and those that will come free within a time at the rate of late: none if the
// carrier answers nothing.
func (s *Slots) Soon(within time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked(time.Now())
	return max(s.free, 0) + int(float64(max(s.rate[0], s.rate[1]))*within.Seconds())
}
