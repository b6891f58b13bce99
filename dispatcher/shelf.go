package dispatcher

import (
	"context"
	"sync"
	"time"

	"intumwa/queue"
)

// singlesBeforeBatch is how many single sends go out in a row while a batch
// waits: they have most of the link, never all of it.
const singlesBeforeBatch = 9

// shelf holds the messages that a lane has claimed and not begun, singles and
// batches apart.
type shelf struct {
	mu     sync.Mutex
	size   int // of each side
	sides  [2][]*journey
	row    int           // singles taken since a batch went or none waited
	filled chan struct{} // something was put
	freed  [2]chan struct{}
}

func newShelf(size int) *shelf {
	return &shelf{size: size, filled: make(chan struct{}, 1),
		freed: [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}}
}

// resize changes how much each side holds.
func (s *shelf) resize(size int) {
	s.mu.Lock()
	s.size = size
	s.mu.Unlock()
	ring(s.freed[queue.Single])
	ring(s.freed[queue.Batch])
}

// waitRoom waits until a side is at most half full and answers its room, so
// that a busy link claims by the dozen and not one by one.
func (s *shelf) waitRoom(ctx context.Context, side queue.Lane) (int, error) {
	for {
		s.mu.Lock()
		n, size := len(s.sides[side]), s.size
		s.mu.Unlock()
		if n <= size/2 {
			return size - n, nil
		}
		select {
		case <-s.freed[side]:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (s *shelf) put(side queue.Lane, journeys []*journey) {
	if len(journeys) == 0 {
		return
	}
	s.mu.Lock()
	s.sides[side] = append(s.sides[side], journeys...)
	s.mu.Unlock()
	ring(s.filled)
}

// next takes the next message, singles first but for the batches' share. One
// caller at a time.
func (s *shelf) next(ctx context.Context) (*journey, error) {
	for {
		if j := s.poll(); j != nil {
			return j, nil
		}
		select {
		case <-s.filled:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// poll takes the next message; nil when there is none.
func (s *shelf) poll() *journey {
	s.mu.Lock()
	side := queue.Single
	batchWaits := len(s.sides[queue.Batch]) > 0
	if len(s.sides[queue.Single]) == 0 || (batchWaits && s.row >= singlesBeforeBatch) {
		side = queue.Batch
	}
	var j *journey
	if waiting := s.sides[side]; len(waiting) > 0 {
		j, waiting[0] = waiting[0], nil
		s.sides[side] = waiting[1:]
		if side == queue.Single && batchWaits {
			s.row++
		} else {
			s.row = 0
		}
	}
	s.mu.Unlock()
	if j != nil {
		ring(s.freed[side])
	}
	return j
}

// pollSingle takes the next single send; nil when there is none.
func (s *shelf) pollSingle() *journey {
	s.mu.Lock()
	var j *journey
	if waiting := s.sides[queue.Single]; len(waiting) > 0 {
		j, waiting[0] = waiting[0], nil
		s.sides[queue.Single] = waiting[1:]
	}
	s.mu.Unlock()
	if j != nil {
		ring(s.freed[queue.Single])
	}
	return j
}

// empty takes everything off the shelf.
func (s *shelf) empty() []*journey {
	s.mu.Lock()
	all := append(s.sides[queue.Single], s.sides[queue.Batch]...)
	s.sides = [2][]*journey{}
	s.mu.Unlock()
	ring(s.freed[queue.Single])
	ring(s.freed[queue.Batch])
	return all
}

// ring wakes the one that waits, or the next that comes to wait.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// slots counts the segments that are out and not yet settled in the database:
// as many as the window, so that a crash doubles no more than that.
type slots struct {
	mu    sync.Mutex
	size  int // the window
	free  int
	since time.Time // when one was last given back, or the last one taken
	freed chan struct{}
}

// stallAfter is how long no slot may come free before the link is taken for
// stalled: its carrier answers nothing, though it may well be bound.
const stallAfter = 2 * time.Second

func newSlots(n int) *slots { return &slots{size: n, free: n, freed: make(chan struct{}, 1)} }

// take waits for a slot. One caller at a time, of take and wait together.
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

// wait waits until a slot is free, and does not take it.
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

// left is how many are free; fewer than none while a smaller window is not
// paid back.
func (s *slots) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// scarce tells whether more than half of the window is used up.
func (s *slots) scarce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 2*s.free < s.size
}

// resize changes the window. When it is smaller, the slots in use are paid back
// first.
func (s *slots) resize(size int) {
	s.mu.Lock()
	more := size - s.size
	s.size = size
	s.mu.Unlock()
	s.give(more)
}

// stalled tells whether none has come free for stallAfter.
func (s *slots) stalled(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free <= 0 && now.Sub(s.since) > stallAfter
}

func (s *slots) give(n int) {
	s.mu.Lock()
	s.free += n
	s.since = time.Now()
	s.mu.Unlock()
	ring(s.freed)
}
