package webhooks

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	readRest      = 5 * time.Millisecond // between reads of new deliveries
	dueShare      = 10                   // looks for due ones rest this many times as long as one took
	troublePause  = 500 * time.Millisecond
	censusEvery   = 15 * time.Second
	lastStatement = 3 * time.Second // for storing results at the end
)

// deliverer is one Run.
type deliverer struct {
	*Webhooks
	caller  *caller
	calling context.Context // ends calls in flight, some time after taking has stopped
	results chan result
	wake    chan struct{} // an endpoint has room again, or something is due sooner
	calls   sync.WaitGroup
	tenure  atomic.Pointer[tenure] // nil: this process does not deliver
	epoch   atomic.Int64           // of the last tenure

	mu       sync.Mutex
	term     int // tenures that did not follow each other; what is of an earlier one is another's by now
	stopping bool
	arrivals arrivals
	workers  map[int64]*endpointWorker
	waiting  int // of all workers
	parked   []parked
	wanting  []*endpointWorker // in turn
	slots    [classes]slots
	nextDue  time.Time // no look for due ones before, unless asked
}

// delivering tells whether this process is the one that delivers.
func (d *deliverer) delivering() bool {
	t := d.tenure.Load()
	return t != nil && t.valid()
}

// Run delivers until ctx ends. Then it takes nothing more, gives the calls in
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
	d.slots[fresh].free = max(1, w.opts.InFlight/4)
	d.slots[slow].free = max(1, w.opts.InFlight/4)
	d.slots[quick].free = max(1, w.opts.InFlight/2)

	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		d.record(storing)
	}()
	var beside sync.WaitGroup
	beside.Go(func() { w.recoverAll(ctx) })
	beside.Go(func() { d.forgetAll(ctx) })
	defer beside.Wait()

	var last *tenure
	for ctx.Err() == nil {
		if last != nil {
			last.over()
		}
		t, err := d.acquire(ctx)
		if err != nil {
			last = nil
			break // ctx has ended
		}
		last = t
		d.takeOver(background, t)
		d.take(ctx, t.lost)
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
	d.tenure.Store(nil)
	d.metrics.owner.Set(0)
	if last != nil {
		last.over()
	}
	return nil
}

// takeOver begins a tenure. When nobody else delivered since the last one, all
// that is in hand stays in hand.
func (d *deliverer) takeOver(ctx context.Context, t *tenure) {
	d.mu.Lock()
	if t.epoch != d.epoch.Load()+1 || d.term == 0 {
		d.term++
		d.arrivals = newArrivals(t.read, t.head)
		d.parked, d.wanting, d.waiting = nil, nil, 0
		for _, e := range d.workers {
			e.waiting, e.due, e.last, e.wanting = nil, false, position{}, false
			clear(e.again)
		}
	}
	d.epoch.Store(t.epoch)
	d.tenure.Store(t)
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

// rounds is what the taking loop remembers from one round to the next.
type rounds struct {
	asked   bool      // there may be new deliveries
	rested  time.Time // no read before
	tidied  time.Time
	census  time.Time // no count of endpoints before
	trouble bool
}

// take is the loop that takes what is new and what is due, until ctx ends or the
// tenure is lost. It wakes by kick, by timer, and by calls that made room.
func (d *deliverer) take(ctx context.Context, lost <-chan struct{}) {
	r := &rounds{asked: true}
	timer := time.NewTimer(d.opts.Idle)
	defer timer.Stop()
	for {
		pause, err := d.round(ctx, r)
		if ctx.Err() != nil {
			return
		}
		d.logTrouble(&r.trouble, err)
		kick, wake := d.kick, d.wake
		if err != nil {
			kick, wake, pause = nil, nil, troublePause
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case <-lost:
			d.tenure.Store(nil)
			d.metrics.owner.Set(0)
			d.log.Warn("this process stopped delivering webhooks")
			return
		case <-kick:
			r.asked = true
		case <-timer.C:
			r.asked = r.asked || err == nil
		case <-wake:
		}
	}
}

// round does what is to be done now and answers when the next is.
func (d *deliverer) round(ctx context.Context, r *rounds) (pause time.Duration, err error) {
	if err := d.reloadChanged(ctx); err != nil {
		return 0, err
	}
	now := time.Now()
	if now.After(r.census) {
		if err := d.census(ctx); err != nil {
			return 0, err
		}
		r.census = now.Add(censusEvery)
	}
	if now.Sub(r.tidied) > waitingLongest/2 {
		d.letGoOld()
		r.tidied = now
	}
	pause = d.opts.Idle
	if rest := r.rested.Sub(now); r.asked && rest > 0 {
		pause = min(pause, rest)
	} else if r.asked {
		full, err := d.takeArrivals(ctx)
		if err != nil {
			return 0, err
		}
		r.asked, r.rested = full, time.Now().Add(readRest)
		if full {
			pause, r.rested = 0, time.Time{}
		}
	}
	if err := d.park(ctx); err != nil {
		return 0, err
	}
	d.mu.Lock()
	until := time.Until(d.nextDue)
	d.mu.Unlock()
	if until <= 0 || d.again.Swap(false) {
		began := time.Now()
		if until, err = d.findDue(ctx); err != nil {
			d.again.Store(true)
			return 0, err
		}
		until = max(until, readRest, dueShare*time.Since(began))
		d.mu.Lock()
		d.nextDue = time.Now().Add(until)
		d.mu.Unlock()
	}
	return max(0, min(pause, until)), d.takeDue(ctx)
}

// logTrouble logs when trouble begins and when it is over, not every round of it.
func (d *deliverer) logTrouble(trouble *bool, err error) {
	switch {
	case err != nil && !*trouble:
		d.log.Error("webhook deliveries cannot be read; trying again", "error", err)
	case err == nil && *trouble:
		d.log.Info("webhook deliveries are read again")
	}
	*trouble = err != nil
}
