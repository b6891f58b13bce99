package dispatcher

import (
	"context"
	"sync"
)

// shareSlack is how many messages, times its weight, a lane may be ahead of
// the carrier's others.
const shareSlack = 20

// share deals a carrier's messages to its lanes in this process by weight. A
// lane that takes nothing (down, throttled, shelf full) holds nobody up.
type share struct {
	mu    sync.Mutex
	lanes map[*lane]*portion
	moved chan struct{} // closed and made anew at every change
}

type portion struct {
	weight float64
	taken  float64 // messages by weight
	hungry int     // feeders that want to take
}

func newShare() *share {
	return &share{lanes: make(map[*lane]*portion), moved: make(chan struct{})}
}

func (s *share) join(l *lane, weight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine := s.lanes[l]; mine != nil { // it is there, its weight is new
		mine.weight = float64(max(weight, 1))
		s.wakeLocked()
		return
	}
	p := &portion{weight: float64(max(weight, 1))}
	for _, other := range s.lanes { // it does not catch up on what went before it came
		p.taken = max(p.taken, other.taken)
	}
	s.lanes[l] = p
}

func (s *share) leave(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lanes, l)
	s.wakeLocked()
}

// turn waits until it is the lane's turn to take; done, called after it took,
// says how many.
func (s *share) turn(ctx context.Context, l *lane) (done func(n int), err error) {
	s.mu.Lock()
	mine := s.lanes[l]
	if mine == nil || len(s.lanes) == 1 {
		s.mu.Unlock()
		return func(int) {}, nil
	}
	mine.hungry++
	for s.aheadLocked(mine) {
		moved := s.moved
		s.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			s.mu.Lock()
			mine.hungry--
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
		mine.hungry--
		mine.taken += float64(n) / mine.weight
		s.wakeLocked()
	}, nil
}

// aheadLocked tells whether another lane that wants to take is behind.
func (s *share) aheadLocked(mine *portion) bool {
	for _, other := range s.lanes {
		if other != mine && other.hungry > 0 && mine.taken > other.taken+shareSlack {
			return true
		}
	}
	return false
}

func (s *share) wakeLocked() {
	close(s.moved)
	s.moved = make(chan struct{})
}
