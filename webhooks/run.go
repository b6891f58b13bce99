package webhooks

import (
	"context"
	"errors"
	"sync"
	"time"

	"intumwa/internal/postgres"
)

const (
	claimPause    = 5 * time.Millisecond // between claims: many deliveries share a transaction
	lookShare     = 10                   // pause between looks, in durations of a look
	mostLookPause = 5 * time.Second      // limits how long a look that waited for PostgreSQL delays the next one
	lookTimeout   = 30 * time.Second     // of a look; longer than any look that need not wait
	recentlyDue   = 2 * time.Second      // how far back most looks go
	lookThrough   = 20                   // pause between looks that go back to the oldest delivery, in Options.Idle
	outagePause   = 500 * time.Millisecond
	lastStatement = 3 * time.Second // for storing results at shutdown
)

// deliverer is the state of one Run.
type deliverer struct {
	*Webhooks
	calling context.Context // ends the calls in flight, Drain after shutdown began
	results chan result
	freed   chan struct{} // a worker of the queue may have room

	mu        sync.Mutex
	ended     *sync.Cond // a caller has ended
	stopping  bool       // deliveries not called yet are released
	stopped   bool       // new ones are released too
	workers   map[int64]*worker
	queue     []*worker // endpoints with due deliveries, in order of service
	free      int       // callers that may begin
	freeSlow  int       // of them, for slow endpoints
	nextLook  time.Time
	earliest  time.Time // of the next look, if there is a kick
	throughAt time.Time // of the next look back to the oldest delivery
}

func newDeliverer(calling context.Context, w *Webhooks) *deliverer {
	d := &deliverer{
		Webhooks: w,
		calling:  calling,
		results:  make(chan result, w.opts.InFlight),
		freed:    make(chan struct{}, 1),
		workers:  make(map[int64]*worker),
		free:     w.opts.InFlight,
		freeSlow: max(1, w.opts.InFlight/2),
	}
	d.ended = sync.NewCond(&d.mu)
	return d
}

// Run delivers until ctx ends. Then it claims no new deliveries, gives calls in flight at most Options.Drain, stores
// their results, and returns nil. Any number of processes may run at the same time.
func (w *Webhooks) Run(ctx context.Context) error {
	background := context.WithoutCancel(ctx)
	calling, endCalls := context.WithCancel(background)
	defer endCalls()
	storing, endStoring := context.WithCancel(background)
	defer endStoring()

	d := newDeliverer(calling, w)
	w.running.Store(d)
	var recording, purging sync.WaitGroup
	recording.Go(func() { d.record(storing) })
	purging.Go(func() { w.runPurge(ctx) })
	defer purging.Wait()

	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(w.opts.Drain, endCalls)
		time.AfterFunc(w.opts.Drain+lastStatement, endStoring)
	})()

	d.claimLoop(ctx)
	w.running.Store(nil)
	d.metrics.delivering.Set(0)
	d.mu.Lock()
	d.stopping = true
	for d.free < d.opts.InFlight {
		d.ended.Wait()
	}
	d.stopped = true
	var left []job // those without room
	for _, e := range d.workers {
		left = append(left, e.waiting...)
	}
	d.mu.Unlock()
	for _, j := range left {
		d.results <- result{job: j, ended: time.Now()}
	}
	close(d.results)
	recording.Wait()
	w.client.closeIdle(0)
	return nil
}

// claimLoop claims due deliveries and starts their calls in a loop until ctx ends. It wakes on a kick, when a call
// leaves room, and for the next look.
func (d *deliverer) claimLoop(ctx context.Context) {
	outage := false
	for ctx.Err() == nil {
		more, err := d.round(ctx)
		if ctx.Err() != nil {
			return
		}
		d.logOutage(&outage, err)
		if err != nil {
			wait(ctx, outagePause)
			continue
		}
		wait(ctx, claimPause)
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-d.kick:
			d.nextLook = d.earliest
		case <-d.freed:
		case <-time.After(time.Until(d.nextLook)):
		}
	}
}

// round looks for due deliveries, if it is time, and claims some. more means that there is more to claim at once.
func (d *deliverer) round(ctx context.Context) (more bool, err error) {
	if start := time.Now(); !start.Before(d.nextLook) {
		since := postgres.Now().Add(-recentlyDue)
		through := d.changed.Swap(false) || !start.Before(d.throughAt)
		if through {
			since = time.Time{}
		}
		companies, oldest, err := d.look(ctx, since)
		if err == nil && through {
			d.metrics.oldest.Set(oldest.Seconds())
			d.throughAt = start.Add(lookThrough * d.opts.Idle)
			err = errors.Join(d.endFirstCalls(ctx), d.countEndpoints(ctx))
		}
		if err != nil {
			d.changed.Store(d.changed.Load() || through)
			return false, err
		}
		d.enqueueAll(companies, since)
		d.earliest = time.Now().Add(lookPause(time.Since(start)))
		d.nextLook = start.Add(max(d.opts.Idle, d.earliest.Sub(start)))
	}
	d.metrics.delivering.Set(1)
	return d.claimQueued()
}

func lookPause(took time.Duration) time.Duration { return min(mostLookPause, lookShare*took) }

// enqueueAll queues endpoints that may have deliveries due since a time.
func (d *deliverer) enqueueAll(companies []int64, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, company := range companies {
		e := d.workers[company]
		if e == nil {
			e = newWorker(company)
			d.workers[company] = e
		}
		d.enqueue(e, position{due: since})
	}
}

// enqueue queues an endpoint. The caller holds the mutex.
func (d *deliverer) enqueue(e *worker, from position) {
	if !e.queued {
		e.queued, e.from = true, from
		d.queue = append(d.queue, e)
	} else if from.due.Before(e.from.due) {
		e.from = from
	}
}

// claimQueued claims deliveries of all queued endpoints with room, in one statement, and starts their calls. more means
// that an endpoint has more.
func (d *deliverer) claimQueued() (more bool, err error) {
	wishes := d.plan()
	if len(wishes) == 0 {
		return false, nil
	}
	found, err := d.claim(d.calling, wishes) // claimed deliveries are called even at shutdown
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, wish := range wishes {
		e, c := wish.worker, found[wish.worker.company]
		if err != nil {
			d.enqueue(e, wish.from)
		}
		if c == nil {
			continue
		}
		d.assign(e, c)
		if len(c.jobs) == wish.most {
			d.enqueue(e, c.last)
			more = more || 2*e.room() >= e.most(e.limit)
		}
	}
	return more, err
}

// logOutage logs the first error and the first success after errors.
func (d *deliverer) logOutage(trouble *bool, err error) {
	switch {
	case err != nil && !*trouble:
		d.metrics.delivering.Set(0)
		d.log.Error("webhook deliveries cannot be read; trying again", "event", "webhook_deliveries_unread", "error", err)
	case err == nil && *trouble:
		d.log.Info("webhook deliveries are read again", "event", "webhook_deliveries_read")
	}
	*trouble = err != nil
}
