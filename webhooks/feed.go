package webhooks

import (
	"context"
	"time"
)

// look surveys, notes which lanes have something due, and returns how long
// nothing else will be due.
func (w *worker) look(ctx context.Context) (time.Duration, error) {
	found, err := w.survey(ctx)
	if err != nil {
		return 0, err
	}
	pause, oldest := w.opts.Idle, time.Duration(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range found {
		if d.wait > 0 {
			pause = min(pause, d.wait)
			continue
		}
		oldest = max(oldest, -d.wait)
		l := w.lanes[d.company]
		if l == nil {
			l = newLane(d.company)
			w.lanes[d.company] = l
		}
		w.aim(l, d)
		l.more = true
		w.queue(l)
	}
	w.metrics.oldest.Set(oldest.Seconds())
	return max(pause, surveyRest), nil
}

// aim gives a lane its endpoint's current URL and secret.
func (w *worker) aim(l *lane, d due) {
	if l.target != nil && l.target.storedURL == d.url && l.target.storedSecret == d.secret+" "+d.previous {
		return
	}
	t, err := w.newTarget(d)
	if err != nil {
		if l.target != nil || !l.broken {
			w.log.Error("a webhook endpoint cannot be used; its deliveries wait", "company_id", d.company, "error", err)
		}
		l.target, l.broken = nil, true
		return
	}
	l.target, l.broken = t, false
}

// queue puts a lane that has more to take in the queue of those.
func (w *worker) queue(l *lane) {
	if l.more && !l.hungry && l.target != nil {
		l.hungry = true
		w.hungry = append(w.hungry, l)
	}
}

// claim takes for all lanes that have more and room, in one statement, and
// starts their calls.
func (w *worker) claim(ctx context.Context) error {
	companies, rooms := w.wants()
	if len(companies) == 0 {
		return nil
	}
	// Shutdown does not cut a claim short: it would leave leases behind.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastStatement)
	defer cancel()
	current, err := w.endpoints(ctx, companies)
	if err != nil {
		w.giveUp(companies)
		return err
	}
	taken, err := w.claimFor(ctx, companies, rooms)
	if err != nil {
		w.giveUp(companies)
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range current {
		w.aim(w.lanes[d.company], d)
	}
	for i, company := range companies {
		l, got := w.lanes[company], taken[company]
		l.waiting = append(l.waiting, got...)
		l.more = len(got) == int(rooms[i])
		w.queue(l)
		w.start(l)
	}
	return nil
}

// wants says for which companies to take how many. The fresh and the slow are
// taken no more than their pools have slots for.
func (w *worker) wants() (companies []int64, rooms []int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	free := [classes]int{fresh: w.pools[fresh].free, slow: w.pools[slow].free, quick: prefetchMax * w.opts.InFlight}
	var left []*lane
	for _, l := range w.hungry {
		room := min(l.room(), free[l.class])
		if room == 0 || l.target == nil {
			left = append(left, l)
			continue
		}
		free[l.class] -= room
		l.hungry = false
		companies, rooms = append(companies, l.company), append(rooms, int32(room))
	}
	w.hungry = left
	return companies, rooms
}

// giveUp puts lanes back in the queue for which nothing could be taken.
func (w *worker) giveUp(companies []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, company := range companies {
		w.queue(w.lanes[company])
	}
}

// stop ends the taking and returns the ids of what waits and was not called.
func (w *worker) stop() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
	var ids []int64
	for _, l := range w.lanes {
		ids = append(ids, l.handBack()...)
	}
	return ids
}
