package dispatcher

import (
	"context"
	"sync"
)

// shareSlack is how many messages a link worker may be ahead of the carrier's others.
const shareSlack = 20

// share deals a carrier's messages of one lane to its link workers in this process,
// evenly. A worker that takes nothing (down, throttled, prefetch full) delays none.
type share struct {
	mu      sync.Mutex
	workers map[*linkWorker]*portion
	moved   chan struct{} // closed and made anew at every change
}

type portion struct {
	taken   int // messages
	waiting int // feeders that want to take
}

func newShare() *share {
	return &share{workers: make(map[*linkWorker]*portion), moved: make(chan struct{})}
}

func (s *share) join(w *linkWorker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &portion{}
	for _, other := range s.workers { // it does not catch up on what went before it came
		p.taken = max(p.taken, other.taken)
	}
	s.workers[w] = p
}

func (s *share) leave(w *linkWorker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.workers, w)
	s.wakeLocked()
}

// turn waits until it is the worker's turn to take; done is called after it took,
// with how many.
func (s *share) turn(ctx context.Context, w *linkWorker) (done func(n int), err error) {
	s.mu.Lock()
	mine := s.workers[w]
	if mine == nil || len(s.workers) == 1 {
		s.mu.Unlock()
		return func(int) {}, nil
	}
	mine.waiting++
	for s.aheadLocked(mine) {
		moved := s.moved
		s.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			s.mu.Lock()
			mine.waiting--
			s.wakeLocked()
			s.mu.Unlock()
			return nil, ctx.Err()
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
	return func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		mine.waiting--
		mine.taken += n
		s.wakeLocked()
	}, nil
}

// aheadLocked reports whether another worker that wants to take is behind.
func (s *share) aheadLocked(mine *portion) bool {
	for _, other := range s.workers {
		if other != mine && other.waiting > 0 && mine.taken > other.taken+shareSlack {
			return true
		}
	}
	return false
}

func (s *share) wakeLocked() {
	close(s.moved)
	s.moved = make(chan struct{})
}
