package links

import (
	"context"
	"math"
	"sync"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/internal/queue"
)

// singlesBeforeBatch is how many single sends go out in a row while a batch
// waits: most of the link, never all of it.
const singlesBeforeBatch = 9

// prefetch holds a link worker's claimed messages that are not begun, by lane.
type prefetch struct {
	mu     sync.Mutex
	size   int        // of each lane
	soon   func() int // how many messages the link will soon submit
	lanes  [2][]*core.InFlight
	inARow int           // singles taken in a row while a batch waited
	filled chan struct{} // something was put
	freed  [2]chan struct{}
}

func newPrefetch(size int) *prefetch {
	return &prefetch{size: size, soon: func() int { return math.MaxInt }, filled: make(chan struct{}, 1),
		freed: [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}}
}

// resize changes how much each lane holds.
func (p *prefetch) resize(size int) {
	p.mu.Lock()
	p.size = size
	p.mu.Unlock()
	p.wake()
}

// wake lets the feeders look for room again.
func (p *prefetch) wake() {
	core.Signal(p.freed[queue.Single])
	core.Signal(p.freed[queue.Batch])
}

// waitRoom waits until a lane is at most half full and returns its room, so
// that a busy link claims many messages at a time. A lane is also full when it has
// what the link will soon submit, single sends first: what is claimed may count as
// submitted (outbox.Store.Claim), and no other link can carry it.
func (p *prefetch) waitRoom(ctx context.Context, lane queue.Lane) (int, error) {
	for {
		p.mu.Lock()
		n, most := len(p.lanes[lane]), p.soon()
		if lane == queue.Batch {
			most -= len(p.lanes[queue.Single])
		}
		if most = min(most, p.size); n < most && n <= most/2 {
			p.mu.Unlock()
			return most - n, nil
		}
		p.mu.Unlock()
		select {
		case <-p.freed[lane]:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (p *prefetch) put(lane queue.Lane, ms []*core.InFlight) {
	if len(ms) == 0 {
		return
	}
	p.mu.Lock()
	p.lanes[lane] = append(p.lanes[lane], ms...)
	p.mu.Unlock()
	core.Signal(p.filled)
}

// next waits for the next message. Singles go first, except for the batches'
// share. One caller at a time.
func (p *prefetch) next(ctx context.Context) (*core.InFlight, error) {
	for {
		if m := p.Poll(); m != nil {
			return m, nil
		}
		select {
		case <-p.filled:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Poll takes the next message, or nil.
func (p *prefetch) Poll() *core.InFlight {
	p.mu.Lock()
	lane := queue.Single
	batchWaits := len(p.lanes[queue.Batch]) > 0
	if len(p.lanes[queue.Single]) == 0 || (batchWaits && p.inARow >= singlesBeforeBatch) {
		lane = queue.Batch
	}
	var m *core.InFlight
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
		core.Signal(p.freed[lane])
	}
	return m
}

// pollSingle takes the next single send, or nil.
func (p *prefetch) pollSingle() *core.InFlight {
	p.mu.Lock()
	var m *core.InFlight
	if waiting := p.lanes[queue.Single]; len(waiting) > 0 {
		m, waiting[0] = waiting[0], nil
		p.lanes[queue.Single] = waiting[1:]
	}
	p.mu.Unlock()
	if m != nil {
		core.Signal(p.freed[queue.Single])
	}
	return m
}

func (p *prefetch) takeAll() []*core.InFlight {
	p.mu.Lock()
	all := append(p.lanes[queue.Single], p.lanes[queue.Batch]...)
	p.lanes = [2][]*core.InFlight{}
	p.mu.Unlock()
	p.wake()
	return all
}

// soonWithin is how far ahead a link claims, unless claims take long.
const soonWithin = 250 * time.Millisecond

// prefetchSize is how many claimed messages may wait in each lane: enough to keep
// the link busy during a claim, at most a quarter of a second's worth.
func prefetchSize(window int, tps float64) int {
	if tps > 0 {
		return min(max(int(tps/4), 1), 500)
	}
	return min(max(2*window, 20), 500)
}
