package webhooks

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	readPause           = 5 * time.Millisecond // between reads of new deliveries
	dueShare            = 10                   // pause between looks for due deliveries, in durations of one look
	outagePause         = 500 * time.Millisecond
	countEndpointsEvery = 15 * time.Second
	lastStatement       = 3 * time.Second // for storing results at shutdown
)

// deliverer is the state of one Run.
type deliverer struct {
	*Webhooks
	caller  *caller
	calling context.Context // ends the calls in flight, Drain after the shutdown began
	results chan result
	wake    chan struct{} // an endpoint has room again, or a delivery is due sooner
	calls   sync.WaitGroup
	lease   atomic.Pointer[lease] // nil: this process is not the owner
	epoch   atomic.Int64          // of the last lease
	leasing sync.Mutex            // held while a lease begins, until epoch is its

	mu         sync.Mutex
	term       int // counts leases before which another process was the owner; jobs of an earlier term belong to that process
	stopping   bool
	arrivals   arrivals
	workers    map[int64]*endpointWorker
	waiting    int // jobs in memory, of all workers
	parked     []parked
	fetchQueue []*endpointWorker // endpoints with due deliveries, in the order in which they are served
	slots      [classes]slots
	nextDue    time.Time // of the next look for due deliveries, unless dueChanged
}

// delivering reports whether this process is the owner and its lease is valid.
func (d *deliverer) delivering() bool {
	t := d.lease.Load()
	return t != nil && t.valid()
}

// Run delivers until ctx ends. Then it takes no new deliveries, gives the calls in
// flight at most Options.Drain, stores their results, and returns nil. Any number
// of processes may run at the same time: one delivers, the others stand by.
func (w *Webhooks) Run(ctx context.Context) error {
	background := context.WithoutCancel(ctx)
	calling, endCalls := context.WithCancel(background)
	defer endCalls()
	storing, endStoring := context.WithCancel(background)
	defer endStoring()

	d := &deliverer{
		Webhooks: w,
		caller:   newCaller(calling, w.opts, w.guard),
		calling:  calling,
		results:  make(chan result, w.opts.InFlight),
		wake:     make(chan struct{}, 1),
		workers:  make(map[int64]*endpointWorker),
	}
	d.slots[untried].free = max(1, w.opts.InFlight/4)
	d.slots[slow].free = max(1, w.opts.InFlight/4)
	d.slots[quick].free = max(1, w.opts.InFlight/2)

	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		d.record(storing)
	}()
	var beside sync.WaitGroup
	beside.Go(func() { w.recoverAll(ctx) })
	beside.Go(func() { d.deleteOld(ctx) })
	defer beside.Wait()

	var last *lease
	for ctx.Err() == nil {
		if last != nil {
			last.release()
		}
		if last = d.acquire(ctx); last == nil {
			break // ctx has ended
		}
		d.take(ctx, last.lost)
	}

	defer time.AfterFunc(w.opts.Drain, endCalls).Stop()
	defer time.AfterFunc(w.opts.Drain+lastStatement, endStoring).Stop()
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	d.calls.Wait()
	close(d.results)
	<-recorded
	d.caller.close()
	d.lease.Store(nil)
	d.metrics.owner.Set(0)
	if last != nil {
		last.release()
	}
	return nil
}

// takeOver starts a lease. The jobs in memory are kept if no other process was the
// owner since the last lease, and dropped otherwise.
func (d *deliverer) takeOver(ctx context.Context, t *lease) {
	d.mu.Lock()
	if t.epoch != d.epoch.Load()+1 || d.term == 0 {
		d.term++
		d.arrivals = newArrivals(t.read, t.head)
		d.parked, d.fetchQueue, d.waiting = nil, nil, 0
		for _, e := range d.workers {
			e.waiting, e.due, e.last, e.inFetchQueue = nil, false, position{}, false
			clear(e.undelivered)
		}
	}
	d.epoch.Store(t.epoch)
	d.lease.Store(t)
	for _, e := range d.workers {
		d.begin(e)
	}
	d.nextDue = time.Time{}
	d.mu.Unlock()
	d.metrics.owner.Set(1)
	d.log.Info("this process delivers webhooks", "epoch", t.epoch)
	ctx, t.end = context.WithCancel(ctx)
	go t.keep(ctx, func() int64 {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.arrivals.done()
	})
}

// rounds is the state of take between its rounds.
type rounds struct {
	moreToRead  bool      // there may be new deliveries
	nextRead    time.Time // of new deliveries
	parkedOldAt time.Time
	nextCount   time.Time // of endpoints
	outage      bool
}

// take is the loop that reads new and due deliveries and starts their calls, until
// ctx ends or the lease is lost. It wakes by a kick, by its timer, and when a call
// leaves room.
func (d *deliverer) take(ctx context.Context, lost <-chan struct{}) {
	r := &rounds{moreToRead: true}
	timer := time.NewTimer(d.opts.Idle)
	defer timer.Stop()
	for {
		pause, err := d.round(ctx, r)
		if ctx.Err() != nil {
			return
		}
		d.logOutage(&r.outage, err)
		kick, wake := d.kick, d.wake
		if err != nil {
			kick, wake, pause = nil, nil, outagePause
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case <-lost:
			d.lease.Store(nil)
			d.metrics.owner.Set(0)
			d.log.Warn("this process stopped delivering webhooks")
			return
		case <-kick:
			r.moreToRead = true
		case <-timer.C:
			r.moreToRead = r.moreToRead || err == nil
		case <-wake:
		}
	}
}

// round does one round of take and returns the pause before the next.
func (d *deliverer) round(ctx context.Context, r *rounds) (pause time.Duration, err error) {
	if err := d.reloadChanged(ctx); err != nil {
		return 0, err
	}
	now := time.Now()
	if now.After(r.nextCount) {
		if err := d.countEndpoints(ctx); err != nil {
			return 0, err
		}
		r.nextCount = now.Add(countEndpointsEvery)
	}
	if now.Sub(r.parkedOldAt) > maxWaitingTime/2 {
		d.parkOld()
		r.parkedOldAt = now
	}
	pause = d.opts.Idle
	if rest := r.nextRead.Sub(now); r.moreToRead && rest > 0 {
		pause = min(pause, rest)
	} else if r.moreToRead {
		full, err := d.takeArrivals(ctx)
		if err != nil {
			return 0, err
		}
		r.moreToRead, r.nextRead = full, time.Now().Add(readPause)
		if full {
			pause, r.nextRead = 0, time.Time{}
		}
	}
	if err := d.park(ctx); err != nil {
		return 0, err
	}
	d.mu.Lock()
	until := time.Until(d.nextDue)
	d.mu.Unlock()
	if until <= 0 || d.dueChanged.Swap(false) {
		began := time.Now()
		if until, err = d.findDue(ctx); err != nil {
			d.dueChanged.Store(true)
			return 0, err
		}
		until = max(until, readPause, dueShare*time.Since(began))
		d.mu.Lock()
		d.nextDue = time.Now().Add(until)
		d.mu.Unlock()
	}
	return max(0, min(pause, until)), d.takeDue(ctx)
}

// logOutage logs the first error and the first success after errors.
func (d *deliverer) logOutage(trouble *bool, err error) {
	switch {
	case err != nil && !*trouble:
		d.log.Error("webhook deliveries cannot be read; trying again", "error", err)
	case err == nil && *trouble:
		d.log.Info("webhook deliveries are read again")
	}
	*trouble = err != nil
}
