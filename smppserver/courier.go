package smppserver

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"intumwa/smpp"
	"intumwa/smppserver/binds"
)

const (
	lookEvery    = 250 * time.Millisecond
	settleEvery  = 20 * time.Millisecond
	takeWithin   = 5 * time.Second
	handWithin   = time.Second // a bind that has room takes a delivery at once
	takenAtOnce  = 500
	againFirst   = time.Second // after the first refusal, doubling
	againLongest = 10 * time.Minute
	againSilent  = 5 * time.Second // after the first deliver_sm without an answer, doubling
)

// courier brings receipts and MOs to the binds of this process.
type courier struct {
	server *Server
	look   chan struct{}

	mu   sync.Mutex
	held map[int64]bool  // the deliveries that were taken, until their outcome is recorded
	over []binds.Outcome // not recorded yet
	wake chan struct{}   // there is one
}

func newCourier(s *Server) *courier {
	return &courier{server: s, held: map[int64]bool{}, look: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

// kick makes the courier look for deliveries. It never blocks.
func (c *courier) kick() {
	select {
	case c.look <- struct{}{}:
	default:
	}
}

// run takes deliveries and records their outcomes, until ctx ends.
func (c *courier) run(ctx context.Context) {
	var settling sync.WaitGroup
	settling.Go(func() { c.settle(ctx) })
	defer settling.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		more, err := c.round(ctx)
		if err != nil && ctx.Err() == nil {
			c.server.log.Warn("receipts for customers' binds could not be taken; trying again", "event",
				"smpp_receipts_not_taken", "error", err)
		}
		if more && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.look:
		}
	}
}

// room returns how many deliveries each key's binds can take now.
func (c *courier) room() map[int64]int {
	s := c.server
	room, all := map[int64]int{}, 0
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bound {
		if b.ready {
			free := min(smpp.DefaultDeliverWindow-b.given, takenAtOnce-all)
			if free > 0 {
				room[b.account] += free
				all += free
			}
		}
	}
	return room
}

// round takes what there is room for, and reports whether there may be more.
func (c *courier) round(ctx context.Context) (more bool, err error) {
	room := c.room()
	if len(room) == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, takeWithin)
	defer cancel()
	c.mu.Lock()
	held := slices.Collect(maps.Keys(c.held))
	c.mu.Unlock()
	taken, err := c.server.deps.Binds.Take(ctx, c.server.process, room, held)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	for i := range taken {
		c.held[taken[i].ID] = true
	}
	c.mu.Unlock()
	for i := range taken {
		c.hand(&taken[i])
	}
	return len(taken) > 0, nil
}

// hand gives a delivery to the bind that submitted its message, or to the key's bind with the most room.
func (c *courier) hand(d *binds.Delivery) {
	s := c.server
	s.mu.Lock()
	to := s.bound[d.Bind]
	if to == nil || !to.ready || to.given >= smpp.DefaultDeliverWindow {
		to = nil
		for _, b := range s.bound {
			if b.account == d.Account && b.ready && b.given < smpp.DefaultDeliverWindow && (to == nil || b.given < to.given) {
				to = b
			}
		}
	}
	if to != nil {
		to.given++
	}
	s.mu.Unlock()
	if to == nil { // it has ended meanwhile
		c.ended(binds.Outcome{ID: d.ID})
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), handWithin)
	defer cancel()
	m := deliver(d, to.short)
	done := func(r smpp.Result) {
		s.mu.Lock()
		to.given--
		s.mu.Unlock()
		c.ended(c.outcome(d, r))
	}
	if err := to.peer.Deliver(ctx, &m, done); err != nil {
		if errors.Is(err, smpp.ErrNotBound) { // it ends
			s.mu.Lock()
			to.ready = false
			s.mu.Unlock()
		}
		done(smpp.Result{Outcome: smpp.NotWritten, Err: err})
	}
}

// passes reports whether a program's refusal of a delivery passes, as a carrier's of a submit_sm does. Other refusals
// are final, those of our form too: the same PDU would be refused again.
func passes(status smpp.Status) bool {
	class := status.Class()
	return class == smpp.ClassThrottled || class == smpp.ClassTemporary || class == smpp.ClassSession
}

// outcome returns what becomes of a delivery.
func (c *courier) outcome(d *binds.Delivery, r smpp.Result) binds.Outcome {
	o := binds.Outcome{ID: d.ID}
	label := deliveryAgain
	switch {
	case r.Outcome == smpp.Accepted:
		o.Done, label = true, deliveryDone
	case r.Outcome == smpp.Rejected && !passes(r.Status):
		o.Done, label = true, deliveryRefused
	case r.Outcome == smpp.Rejected:
		pause := min(againFirst<<min(d.Tries, 20), againLongest)
		o.Again, o.Tried = pause/2+rand.N(pause/2), true
	case r.Outcome == smpp.NoAnswer:
		o.Again, o.Tried = min(againSilent<<min(d.Tries, 20), againLongest), true
	}
	c.server.metrics.deliveries.WithLabelValues(label).Inc()
	return o
}

// late ends a delivery whose answer comes after it had counted as unanswered.
func (c *courier) late(id uint64, r smpp.Result) {
	if r.Outcome == smpp.Accepted || r.Outcome == smpp.Rejected && !passes(r.Status) {
		c.ended(binds.Outcome{ID: int64(id), Done: true})
	}
}

// ended adds an outcome to those that settle records.
func (c *courier) ended(o binds.Outcome) {
	c.mu.Lock()
	c.over = append(c.over, o)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// settle records outcomes until ctx ends and none is left. What it cannot record is delivered again, when this
// process's binds are over.
func (c *courier) settle(ctx context.Context) {
	for {
		select {
		case <-c.wake:
			time.Sleep(settleEvery) // more come
		case <-ctx.Done():
		}
		c.mu.Lock()
		over := c.over
		c.over = nil
		c.mu.Unlock()
		if len(over) > 0 {
			c.record(context.WithoutCancel(ctx), over)
		}
		if ctx.Err() != nil { // the binds have ended before
			return
		}
	}
}

func (c *courier) record(ctx context.Context, over []binds.Outcome) {
	ctx, cancel := context.WithTimeout(ctx, takeWithin)
	defer cancel()
	if err := c.server.deps.Binds.Settle(ctx, c.server.process, over); err != nil {
		c.server.log.Warn("answers to receipts could not be recorded; trying again", "event", "smpp_receipts_not_settled",
			"error", err)
		time.Sleep(lookEvery)
		c.mu.Lock()
		c.over = append(over, c.over...)
		c.mu.Unlock()
		select {
		case c.wake <- struct{}{}:
		default:
		}
		return
	}
	c.mu.Lock()
	for _, o := range over {
		delete(c.held, o.ID)
	}
	c.mu.Unlock()
	c.kick() // there is room again
}
