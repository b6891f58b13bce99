package dispatcher

import (
	"context"
	"sync"
	"time"

	"intumwa/queue"
)

// singlesBeforeBatch is how many single sends go out in a row while a batch
// waits: most of the link, never all of it.
const singlesBeforeBatch = 9

// prefetch holds a link worker's claimed messages that are not begun, by lane.
type prefetch struct {
	mu     sync.Mutex
	size   int // of each lane
	lanes  [2][]*inFlight
	inARow int           // singles taken in a row while a batch waited
	filled chan struct{} // something was put
	freed  [2]chan struct{}
}

func newPrefetch(size int) *prefetch {
	return &prefetch{size: size, filled: make(chan struct{}, 1),
		freed: [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}}
}

// resize changes how much each lane holds.
func (p *prefetch) resize(size int) {
	p.mu.Lock()
	p.size = size
	p.mu.Unlock()
	signal(p.freed[queue.Single])
	signal(p.freed[queue.Batch])
}

// waitRoom waits until a lane is at most half full and returns its room, so
// that a busy link claims many messages at a time.
func (p *prefetch) waitRoom(ctx context.Context, lane queue.Lane) (int, error) {
	for {
		p.mu.Lock()
		n, size := len(p.lanes[lane]), p.size
		p.mu.Unlock()
		if n <= size/2 {
			return size - n, nil
		}
		select {
		case <-p.freed[lane]:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (p *prefetch) put(lane queue.Lane, ms []*inFlight) {
	if len(ms) == 0 {
		return
	}
	p.mu.Lock()
	p.lanes[lane] = append(p.lanes[lane], ms...)
	p.mu.Unlock()
	signal(p.filled)
}

// next waits for the next message. Singles go first, except for the batches'
// share. One caller at a time.
func (p *prefetch) next(ctx context.Context) (*inFlight, error) {
	for {
		if m := p.poll(); m != nil {
			return m, nil
		}
		select {
		case <-p.filled:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// poll takes the next message, or nil.
func (p *prefetch) poll() *inFlight {
	p.mu.Lock()
	lane := queue.Single
	batchWaits := len(p.lanes[queue.Batch]) > 0
	if len(p.lanes[queue.Single]) == 0 || (batchWaits && p.inARow >= singlesBeforeBatch) {
		lane = queue.Batch
	}
	var m *inFlight
	if waiting := p.lanes[lane]; len(waiting) > 0 {
		m, waiting[0] = waiting[0], nil
		p.lanes[lane] = waiting[1:]
		if lane == queue.Single && batchWaits {
			p.inARow++
		} else {
			p.inARow = 0
		}
	}
	p.mu.Unlock()
	if m != nil {
		signal(p.freed[lane])
	}
	return m
}

// pollSingle takes the next single send, or nil.
func (p *prefetch) pollSingle() *inFlight {
	p.mu.Lock()
	var m *inFlight
	if waiting := p.lanes[queue.Single]; len(waiting) > 0 {
		m, waiting[0] = waiting[0], nil
		p.lanes[queue.Single] = waiting[1:]
	}
	p.mu.Unlock()
	if m != nil {
		signal(p.freed[queue.Single])
	}
	return m
}

func (p *prefetch) takeAll() []*inFlight {
	p.mu.Lock()
	all := append(p.lanes[queue.Single], p.lanes[queue.Batch]...)
	p.lanes = [2][]*inFlight{}
	p.mu.Unlock()
	signal(p.freed[queue.Single])
	signal(p.freed[queue.Batch])
	return all
}

// signal wakes the waiting goroutine, or the next one to wait.
func signal(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// slots limits the segments that are out and not yet settled in the database to
// the window, so that a crash duplicates no more than that.
type slots struct {
	mu    sync.Mutex
	size  int // the window
	free  int
	since time.Time // when a slot was last freed, or the last free one was taken
	freed chan struct{}
}

// stallAfter is the time without a freed slot after which a link counts as
// stalled: its carrier answers nothing, even if the link is bound.
const stallAfter = 2 * time.Second

func newSlots(n int) *slots { return &slots{size: n, free: n, freed: make(chan struct{}, 1)} }

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

func (s *slots) give(n int) {
	s.mu.Lock()
	s.free += n
	s.since = time.Now()
	s.mu.Unlock()
	signal(s.freed)
}
