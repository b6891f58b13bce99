package api

import (
	"context"
	"errors"
	"sync"
	"time"
)

// placeWait is how long a large body waits for a place in memory.
const placeWait = 10 * time.Second

var errNoPlace = errors.New("no place for a large body came free")

// places are the large bodies that may be in memory at once: of everybody
// together, and of one user, so that one who sends many slowly does not keep
// the others out.
type places struct {
	all chan struct{}
	own int // of one user

	mu    sync.Mutex
	users map[int64]*userPlaces
}

type userPlaces struct {
	taken   chan struct{}
	present int // who holds one or waits
}

func newPlaces(n int) *places {
	return &places{all: make(chan struct{}, n), own: max(1, n/4), users: make(map[int64]*userPlaces)}
}

// enter waits for a place and takes it; errNoPlace when none came free in
// time. leave is to be called once.
func (p *places) enter(ctx context.Context, user int64) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, placeWait)
	defer cancel()
	own := p.of(user)
	if !take(ctx, own.taken) {
		p.gone(user, own)
		return nil, errNoPlace
	}
	if !take(ctx, p.all) {
		<-own.taken
		p.gone(user, own)
		return nil, errNoPlace
	}
	return func() {
		<-p.all
		<-own.taken
		p.gone(user, own)
	}, nil
}

func take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *places) of(user int64) *userPlaces {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.users[user]
	if own == nil {
		own = &userPlaces{taken: make(chan struct{}, p.own)}
		p.users[user] = own
	}
	own.present++
	return own
}

func (p *places) gone(user int64, own *userPlaces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.present--; own.present == 0 {
		delete(p.users, user)
	}
}
