package throttle

import (
	"context"
	"errors"
	"sync"
	"time"
)

// TurnWait bounds the wait for a turn of the caller's own, and then for one of all.
const TurnWait = time.Second

// Reasons for no turn.
var (
	ErrOwnTurns = errors.New("the caller's turns are taken")
	ErrAllTurns = errors.New("all turns are taken")
)

// Turns limits concurrent work in this process, in total and per caller, for example a
// user's look-ups in the database.
//
// A turn stays taken for as long again as it lasted, up to a second. So a caller with
// many connections keeps the database busy at most half of the time, and a caller with
// one connection does not notice.
type Turns struct {
	all chan struct{}
	own int

	mu      sync.Mutex
	callers map[int64]*turnsOf
}

// turnsOf are the turns of one caller.
type turnsOf struct {
	taken chan struct{}
	users int // requests that hold a turn or wait for one
}

// NewTurns returns Turns with these limits, in total and per caller.
func NewTurns(all, own int) *Turns {
	return &Turns{all: make(chan struct{}, all), own: own, callers: make(map[int64]*turnsOf)}
}

// Enter waits for a turn. leave ends it; further calls of leave do nothing. The errors
// are ErrOwnTurns and ErrAllTurns, also when ctx ends meanwhile.
func (t *Turns) Enter(ctx context.Context, caller int64) (leave func(), err error) {
	of := t.of(caller)
	if !takeTurn(ctx, of.taken) {
		t.release(caller, of)
		return nil, ErrOwnTurns
	}
	if !takeTurn(ctx, t.all) {
		<-of.taken
		t.release(caller, of)
		return nil, ErrAllTurns
	}
	start := time.Now()
	return sync.OnceFunc(func() {
		<-t.all
		time.AfterFunc(min(time.Since(start), TurnWait), func() {
			<-of.taken
			t.release(caller, of)
		})
	}), nil
}

func takeTurn(ctx context.Context, turns chan struct{}) bool {
	select {
	case turns <- struct{}{}: // mostly
		return true
	default:
	}
	timer := time.NewTimer(TurnWait)
	defer timer.Stop()
	select {
	case turns <- struct{}{}:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

func (t *Turns) of(caller int64) *turnsOf {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.callers[caller]
	if of == nil {
		of = &turnsOf{taken: make(chan struct{}, t.own)}
		t.callers[caller] = of
	}
	of.users++
	return of
}

func (t *Turns) release(caller int64, of *turnsOf) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of.users--; of.users == 0 {
		delete(t.callers, caller)
	}
}
