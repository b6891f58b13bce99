package webhooks

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"intumwa/internal/postgres"
)

const (
	claimPause    = 5 * time.Millisecond // between claims: many deliveries share a transaction
	lookShare     = 10                   // pause between looks, in durations of one look
	mostLookPause = 5 * time.Second      // a look that waited for PostgreSQL delays the next one by no more
	lookTimeout   = 30 * time.Second     // of a look; it is longer than any look takes that waits for nothing
	recentlyDue   = 2 * time.Second      // how far back most looks go
	lookThrough   = 20                   // pause between looks that go back to the oldest delivery, in Options.Idle
	outagePause   = 500 * time.Millisecond
	lastStatement = 3 * time.Second // for storing results at shutdown

	quickAnswer = time.Second      // an endpoint that takes longer is slow
	firstCalls  = 4                // of one endpoint at a time, after its first call and after a failure
	mostCalls   = 32               // of one endpoint at a time, while it responds quickly
	brokenPause = 30 * time.Second // how long an endpoint whose secret cannot be read is left alone

	// ahead is how many deliveries of an endpoint that responds quickly are claimed for each
	// call: a claim costs a commit.
	ahead = 8
)

// worker calls one endpoint. The deliverer's mutex guards it.
type worker struct {
	company int64
	target  *target // of the last claim; nil: none, or it cannot be called
	failing bool    // its last call failed
	resting time.Time
	known   bool // a call has ended
	slow    bool // the last call took longer than quickAnswer
	limit   int  // calls at a time
	calls   int  // in flight or about to be
	queued  bool // is in deliverer.queue
	from    position
}

// newWorker makes a worker with a limit of one call, until that has ended.
func newWorker(company int64) *worker { return &worker{company: company, limit: 1} }

// room returns how many calls may begin. It is 0 unless half of them are free, so that
// claims stay large.
func (e *worker) room() int {
	if free := e.limit - e.calls; 2*free >= e.limit {
		return max(0, free)
	}
	return 0
}

// quick reports whether the last calls were quick successes.
func (e *worker) quick() bool { return e.known && !e.slow && !e.failing && e.limit > firstCalls }

// learn adjusts the limit after an attempt: each quick success raises it by one, up to
// most; a failure or a slow response resets it to first.
func (e *worker) learn(success bool, took time.Duration, first, most int) {
	e.slow = took > quickAnswer
	if e.slow || !success || !e.known {
		e.limit = first
	} else if e.limit < most {
		e.limit++
	}
	e.known = true
}

// deliverer is the state of one Run.
type deliverer struct {
	*Webhooks
	calling context.Context // ends the calls in flight, Drain after the shutdown began
	results chan result
	roomy   chan struct{} // a call has ended
	calls   sync.WaitGroup

	mu        sync.Mutex
	workers   map[int64]*worker
	queue     []*worker // endpoints with due deliveries, in the order in which they are served
	free      int       // calls that may begin
	freeSlow  int       // of them, at slow endpoints
	nextLook  time.Time
	earliest  time.Time // of the next look, if there is a kick
	throughAt time.Time // of the next look that goes back to the oldest delivery
}

func newDeliverer(calling context.Context, w *Webhooks) *deliverer {
	return &deliverer{
		Webhooks: w,
		calling:  calling,
		results:  make(chan result, w.opts.InFlight),
		roomy:    make(chan struct{}, 1),
		workers:  make(map[int64]*worker),
		free:     w.opts.InFlight,
		freeSlow: max(1, w.opts.InFlight/2),
	}
}

// Run delivers until ctx ends. Then it claims no new deliveries, gives the calls in
// flight at most Options.Drain, stores their results, and returns nil. Any number of
// processes may run at the same time.
func (w *Webhooks) Run(ctx context.Context) error {
	background := context.WithoutCancel(ctx)
	calling, endCalls := context.WithCancel(background)
	defer endCalls()
	storing, endStoring := context.WithCancel(background)
	defer endStoring()

	d := newDeliverer(calling, w)
	var recording, purging sync.WaitGroup
	recording.Go(func() { d.record(storing) })
	purging.Go(func() { w.runPurge(ctx) })
	defer purging.Wait()

	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(w.opts.Drain, endCalls)
		time.AfterFunc(w.opts.Drain+lastStatement, endStoring)
	})()

	d.take(ctx)
	d.metrics.delivering.Set(0)
	d.calls.Wait()
	close(d.results)
	recording.Wait()
	w.transport.CloseIdleConnections()
	return nil
}

// take is the loop that claims due deliveries and starts their calls, until ctx ends. It
// wakes by a kick, when a call leaves room, and for the next look.
func (d *deliverer) take(ctx context.Context) {
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
		case <-d.roomy:
		case <-time.After(time.Until(d.nextLook)):
		}
	}
}

// round looks for due deliveries, if it is time, and claims some. more means that there is more
// to claim at once.
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
			err = d.countEndpoints(ctx)
		}
		if err != nil {
			d.changed.Store(d.changed.Load() || through)
			return false, err
		}
		d.enqueueAll(companies, since)
		d.earliest = time.Now().Add(min(mostLookPause, lookShare*time.Since(start)))
		d.nextLook = start.Add(max(d.opts.Idle, d.earliest.Sub(start)))
	}
	d.metrics.delivering.Set(1)
	return d.claimQueued()
}

// enqueueAll puts endpoints into the queue, which may have deliveries that are due since
// a time.
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

// enqueue puts an endpoint into the queue. The caller holds the mutex.
func (d *deliverer) enqueue(e *worker, from position) {
	if !e.queued {
		e.queued, e.from = true, from
		d.queue = append(d.queue, e)
	} else if from.due.Before(e.from.due) {
		e.from = from
	}
}

// claimQueued claims deliveries of all queued endpoints that have room, in one statement,
// and starts their calls. more means that one of them has more.
func (d *deliverer) claimQueued() (more bool, err error) {
	wishes := d.plan()
	if len(wishes) == 0 {
		return false, nil
	}
	found, err := d.claim(d.calling, wishes) // what is claimed is called, also at shutdown
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, wish := range wishes {
		e, c, called := wish.worker, found[wish.worker.company], 0
		if err != nil {
			d.enqueue(e, wish.from)
		}
		if c != nil && d.aim(e, c.endpoint) {
			target, runs := e.target, make([][]job, min(wish.calls, len(c.jobs)))
			for i, j := range c.jobs {
				runs[i%len(runs)] = append(runs[i%len(runs)], j)
			}
			called = len(runs)
			for _, run := range runs {
				d.calls.Go(func() { d.deliver(e, wish.slow, target, run) })
			}
		}
		d.release(e, wish.slow, wish.calls-called)
		if c != nil && len(c.jobs) == wish.most {
			d.enqueue(e, c.last)
			more = more || e.room() > 0
		}
	}
	return more, err
}

// plan takes the endpoints that have room from the queue and reserves their calls.
func (d *deliverer) plan() (wishes []wish) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var left []*worker
	for _, e := range d.queue {
		if time.Now().Before(e.resting) {
			e.queued = false
			continue
		}
		calls := min(e.room(), d.free)
		if e.slow {
			calls = min(calls, d.freeSlow)
		}
		if calls == 0 || len(wishes) == claimCompanies {
			left = append(left, e)
			continue
		}
		e.queued = false
		d.release(e, e.slow, -calls)
		w := wish{worker: e, from: e.from, calls: calls, most: calls, slow: e.slow}
		if e.quick() {
			w.most *= ahead
		}
		wishes = append(wishes, w)
	}
	d.queue = left
	return wishes
}

// release frees calls of an endpoint that were reserved while it was slow, or not.
func (d *deliverer) release(e *worker, slow bool, n int) {
	e.calls -= n
	d.free += n
	if slow {
		d.freeSlow += n
	}
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

// deliver makes one attempt at each delivery, one after the other.
func (d *deliverer) deliver(e *worker, slow bool, t *target, jobs []job) {
	for _, j := range jobs {
		d.attempt(e, t, j)
	}
	d.mu.Lock()
	d.release(e, slow, 1)
	d.mu.Unlock()
	select {
	case d.roomy <- struct{}{}:
	default:
	}
}

// attempt makes one attempt and passes its result to record. An attempt that could outlast its
// claim is not made, and one that the shutdown cuts is not recorded: another process makes it
// when the claim has ended.
func (d *deliverer) attempt(e *worker, t *target, j job) {
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()
	ok, success, took := false, false, time.Duration(0)
	if time.Now().Before(j.beginBy) {
		r := result{job: j, url: t.stored.url}
		if r.attempt, took, ok = d.call(d.calling, t, &j, false); ok {
			success = r.attempt.Result == result2xx
			r.ended = time.Now()
			r.state, r.delay = d.schedule.after(j.tries+1, success)
			d.metrics.attempt(eventName(j.id), r.attempt.Result, took)
			if r.state == exhausted {
				d.metrics.exhausted.Inc()
			}
			d.logAttempt(t, r)
			d.results <- r
		}
	}
	if ok {
		d.mu.Lock()
		e.learn(success, took, d.opts.firstCalls(), d.opts.mostCalls())
		d.mu.Unlock()
	}
}

// logAttempt logs an attempt at level debug, and at level warn when the delivery is
// given up after it. The message's ULID is looked up only for lines that are written.
func (d *deliverer) logAttempt(t *target, r result) {
	level, what := slog.LevelDebug, "webhook attempt"
	if r.state == exhausted {
		level, what = slog.LevelWarn, "webhook delivery given up"
	}
	host := t.url.Hostname()
	if r.attempt.Result != result2xx { // from the first failure on; the log merges repeated lines about one endpoint
		d.log.Warn("webhook calls to an endpoint fail; they are tried again", "company_id", r.company, "host", host, "result", r.attempt.Result)
	}
	if !d.log.Enabled(d.calling, level) {
		return
	}
	about := "message_id"
	if r.data != "" {
		about = "number"
	}
	fields := []any{about, messageOf(r.id), "webhook_id", webhookID(r.id), "company_id", r.company, "event", eventName(r.id),
		"host", host, "attempt", r.tries + 1, "result", r.attempt.Result}
	if d.opts.Name != nil && r.data == "" {
		if name := d.opts.Name(d.calling, messageOf(r.id)); name != "" {
			fields = append([]any{"id", name}, fields...)
		}
	}
	d.log.Log(d.calling, level, what, fields...)
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
