package webhooks

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/internal/postgres"
)

const (
	claimPause    = 5 * time.Millisecond // between claims: many deliveries share a transaction
	justDue       = time.Second          // how far back a claim for Enqueue goes
	lookShare     = 10                   // pause between looks, in durations of one look
	recentlyDue   = 5 * time.Second      // how far back most looks go
	lookThrough   = 20                   // one look of so many goes back to the oldest delivery
	outagePause   = 500 * time.Millisecond
	countEvery    = 15 * time.Second
	lastStatement = 3 * time.Second // for storing results at shutdown
)

// deliverer is the state of one Run.
type deliverer struct {
	*Webhooks
	caller   *caller
	calling  context.Context // ends the calls in flight, Drain after the shutdown began
	results  chan result
	roomy    chan struct{} // an endpoint has room again
	calls    sync.WaitGroup
	unstored atomic.Bool // results wait for the database: their claims may have ended, and nothing is claimed

	mu       sync.Mutex
	stopping bool
	workers  map[int64]*worker
	queue    []*worker    // endpoints with due deliveries, in the order in which they are served
	free     [classes]int // call slots
}

func newDeliverer(calling context.Context, w *Webhooks) *deliverer {
	return &deliverer{
		Webhooks: w,
		caller:   newCaller(calling, w.opts, w.guard),
		calling:  calling,
		results:  make(chan result, w.opts.InFlight),
		roomy:    make(chan struct{}, 1),
		workers:  make(map[int64]*worker),
		free:     [classes]int{untried: max(1, w.opts.InFlight/4), slow: max(1, w.opts.InFlight/4), quick: max(1, w.opts.InFlight/2)},
	}
}

// Run delivers until ctx ends. Then it claims no new deliveries, gives the calls in
// flight at most Options.Drain, stores their results, gives back what it did not call,
// and returns nil. Any number of processes may run at the same time.
func (w *Webhooks) Run(ctx context.Context) error {
	background := context.WithoutCancel(ctx)
	calling, endCalls := context.WithCancel(background)
	defer endCalls()
	storing, endStoring := context.WithCancel(background)
	defer endStoring()

	d := newDeliverer(calling, w)
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		d.record(storing)
	}()
	var beside sync.WaitGroup
	beside.Go(func() { w.recoverAll(ctx) })
	beside.Go(func() { w.deleteOld(ctx) })
	defer beside.Wait()

	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(w.opts.Drain, endCalls)
		time.AfterFunc(w.opts.Drain+lastStatement, endStoring)
	})()

	d.take(ctx)

	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	d.metrics.delivering.Set(0)
	d.calls.Wait()
	close(d.results)
	<-recorded
	d.caller.close()
	return nil
}

// rounds is the state of take between its rounds.
type rounds struct {
	kicked    bool
	looks     int
	nextLook  time.Time
	nextCount time.Time // of endpoints
	outage    bool
}

// take is the loop that claims due deliveries and starts their calls, until ctx ends. It
// wakes by a kick, when a call leaves room, and by its timer.
func (d *deliverer) take(ctx context.Context) {
	r := &rounds{kicked: true}
	for {
		more, err := d.round(ctx, r)
		if ctx.Err() != nil {
			return
		}
		d.logOutage(&r.outage, err)
		pause := claimPause
		if err != nil {
			pause = outagePause
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		if timer.Reset(time.Until(r.nextLook)); more || err != nil {
			timer.Reset(0)
		}
		select {
		case <-ctx.Done():
		case <-d.kick:
			r.kicked = true
		case <-d.roomy:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// round does one round of take. more means that there is more to claim at once.
func (d *deliverer) round(ctx context.Context, r *rounds) (more bool, err error) {
	now := time.Now()
	if now.After(r.nextCount) {
		if err := d.countEndpoints(ctx); err != nil {
			return false, err
		}
		r.nextCount = now.Add(countEvery)
	}
	if r.kicked {
		r.kicked = false
		d.takeWanted(now)
	}
	if !now.Before(r.nextLook) {
		through := r.looks%lookThrough == 0
		since := lately()
		if through {
			since = time.Time{}
		}
		companies, oldest, err := d.look(ctx, since)
		if err != nil {
			return false, err
		}
		if through {
			d.metrics.oldest.Set(oldest.Seconds())
		}
		d.enqueueAll(companies, since)
		r.looks++
		r.nextLook = time.Now().Add(max(d.opts.Idle, lookShare*time.Since(now)))
	}
	d.metrics.delivering.Set(1)
	if d.unstored.Load() {
		return false, nil
	}
	return d.claimQueued(ctx)
}

// lately returns since when deliveries are due that most looks find.
func lately() time.Time { return postgres.Now().Add(-recentlyDue) }

// takeWanted puts the endpoints into the queue for which Run was kicked.
func (d *deliverer) takeWanted(now time.Time) {
	companies, all := d.wanted.take(now)
	recent := position{due: postgres.Now().Add(-justDue)}
	d.mu.Lock()
	defer d.mu.Unlock()
	for company, is := range companies {
		e, from := d.worker(company), recent
		if is.again || is.changed {
			from = position{}
		}
		if is.changed {
			e.change()
		}
		d.enqueue(e, from)
	}
	if all {
		for _, e := range d.workers {
			e.change()
			d.enqueue(e, position{})
		}
	}
}

// enqueueAll puts endpoints into the queue, which may have deliveries that are due since
// a time.
func (d *deliverer) enqueueAll(companies []int64, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, company := range companies {
		d.enqueue(d.worker(company), position{due: since})
	}
}

// enqueue puts an endpoint into the queue. The caller holds the mutex.
func (d *deliverer) enqueue(e *worker, from position) {
	if !e.queued {
		e.queued, e.from = true, from
		d.queue = append(d.queue, e)
	} else if from.due.Before(e.from.due) {
		e.from = from
	}
}

// worker returns a company's worker; the caller holds the mutex.
func (d *deliverer) worker(company int64) *worker {
	e := d.workers[company]
	if e == nil {
		e = newWorker(company)
		d.workers[company] = e
	}
	return e
}

// claimQueued claims deliveries of all queued endpoints that have room, in one statement,
// and starts their calls. more means that one of them has more.
func (d *deliverer) claimQueued(ctx context.Context) (more bool, err error) {
	wishes := d.plan()
	if len(wishes) == 0 {
		return false, nil
	}
	found, err := d.claim(d.calling, wishes) // not ctx: what it claimed is given back
	return d.begin(ctx, wishes, found, err), err
}

// begin starts the calls of what was claimed, or gives it back when ctx has ended. Without
// a claim, because of err, the endpoints are queued again.
func (d *deliverer) begin(ctx context.Context, wishes []wish, found map[int64]*claimed, err error) (more bool) {
	d.mu.Lock()
	var back []result
	for _, wish := range wishes {
		e, c, runs := wish.worker, found[wish.worker.company], 0
		switch {
		case err != nil:
			d.enqueue(e, e.from)
		case c == nil:
		case ctx.Err() != nil || !d.aim(e, c.endpoint):
			back = append(back, giveBack(e.company, c.jobs)...)
		default:
			runs = d.start(wish, c.jobs)
		}
		d.free[wish.class] += wish.runs - runs
		if e.runs -= wish.runs - runs; c != nil && len(c.jobs) == wish.most {
			d.enqueue(e, c.last)
			more = more || e.room() > 0
		}
	}
	d.mu.Unlock()
	for _, r := range back {
		d.results <- r
	}
	return more
}

// plan takes the endpoints that have room from the queue and reserves their call slots.
func (d *deliverer) plan() (wishes []wish) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var left []*worker
	now := time.Now()
	for _, e := range d.queue {
		if now.Before(e.resting) {
			e.queued = false
			continue
		}
		runs := min(e.room(), d.free[e.class])
		if runs == 0 || len(wishes) == claimCompanies {
			left = append(left, e)
			continue
		}
		e.queued = false
		e.runs += runs
		d.free[e.class] -= runs
		wishes = append(wishes, wish{worker: e, class: e.class, runs: runs, most: runs * e.ahead()})
	}
	d.queue = left
	return wishes
}

// aim gives a worker the endpoint as it was at the claim; false when it cannot be called.
// The caller holds the mutex.
func (d *deliverer) aim(e *worker, at storedEndpoint) bool {
	e.failing, at.failing = at.failing, false
	if e.target != nil && e.target.stored == at {
		return true
	}
	var err error
	if e.target, err = d.newTarget(at); err != nil {
		d.log.Error("webhook endpoint cannot be used; its deliveries wait", "company_id", e.company, "error", err)
		e.resting = time.Now().Add(brokenPause)
	}
	return err == nil
}

// start begins the calls of what was claimed in the reserved slots and returns how many
// of them it took. The caller holds the mutex.
func (d *deliverer) start(w wish, jobs []job) (runs int) {
	runs = min(w.runs, len(jobs))
	for n := range runs {
		var mine []job
		for i := n; i < len(jobs); i += runs {
			mine = append(mine, jobs[i])
		}
		d.calls.Add(1)
		go d.run(w.worker, mine, w.worker.target, &slot{class: w.class, changed: w.worker.changed, started: time.Now()})
	}
	return runs
}

// logOutage logs the first error and the first success after errors.
func (d *deliverer) logOutage(trouble *bool, err error) {
	switch {
	case err != nil && !*trouble:
		d.metrics.delivering.Set(0)
		d.log.Error("webhook deliveries cannot be read; trying again", "error", err)
	case err == nil && *trouble:
		d.log.Info("webhook deliveries are read again")
	}
	*trouble = err != nil
}

// wakeUp wakes take.
func (d *deliverer) wakeUp() {
	select {
	case d.roomy <- struct{}{}:
	default:
	}
}
