package webhooks

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

const lastStatement = 3 * time.Second // for storing results at shutdown

// deliverer is the state of one Run.
type deliverer struct {
	*core

	calling  context.Context // ends the calls in flight, Drain after shutdown began
	outcomes chan outcome
	freed    chan struct{} // a worker of the queue may have room

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

func newDeliverer(calling context.Context, c *core) *deliverer {
	d := &deliverer{
		core:     c,
		calling:  calling,
		outcomes: make(chan outcome, c.opts.InFlight),
		freed:    make(chan struct{}, 1),
		workers:  make(map[int64]*worker),
		free:     c.opts.InFlight,
		freeSlow: max(1, c.opts.InFlight/2),
	}
	d.ended = sync.NewCond(&d.mu)
	return d
}

// takes sets taken for the new deliveries that this process may claim: their company's endpoint is quick and has room,
// and no older deliveries wait for it.
func (d *deliverer) takes(companies []int64, taken []bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := map[int64]int{} // room after the deliveries so far
	for i, company := range companies {
		room, seen := left[company]
		if e := d.workers[company]; !seen && e != nil && e.quick() && !e.queued && d.free > 0 &&
			time.Now().After(e.pausedUntil) {
			room = e.room()
		}
		taken[i] = room > 0
		left[company] = room - 1
	}
}

// hand starts the first calls that Enqueue recorded for this process.
func (d *deliverer) hand(calls *firstCalls, found []*claimed) {
	d.mu.Lock()
	stopped := d.stopped
	for _, c := range found {
		if !stopped {
			d.assign(d.workers[c.endpoint.company], c)
		}
	}
	d.mu.Unlock()
	if !stopped || len(found) == 0 {
		return
	}
	for i := range calls.outcomes {
		calls.outcomes[i].ended = time.Now()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastStatement)
	defer cancel()
	_ = d.store(ctx, calls.outcomes) // on failure another process ends them
}

// assign makes claimed deliveries wait for a worker. They stay claimed if it cannot call. The caller holds the mutex.
func (d *deliverer) assign(e *worker, c *claimed) {
	if !d.aim(e, c.endpoint) {
		return
	}
	for _, j := range c.jobs {
		j.target = e.target
		e.waiting = append(e.waiting, j)
	}
	d.begin(e)
}

// begin starts callers for waiting deliveries. Those without room start when others have ended. The caller holds the
// mutex.
func (d *deliverer) begin(e *worker) {
	callers := min(len(e.waiting), e.limit-e.callers, d.free)
	slow := e.slow
	if slow {
		callers = min(callers, d.freeSlow)
	}
	for range callers {
		d.occupy(e, slow, 1)
		go d.deliver(e, slow)
	}
	if e.callers == 0 && len(e.waiting) > 0 {
		d.enqueue(e, e.from)
	}
}

func (d *deliverer) occupy(e *worker, slow bool, n int) {
	e.callers += n
	d.free -= n
	if slow {
		d.freeSlow -= n
	}
}

// aim gives a worker the endpoint as of the claim; false if it cannot be called. The caller holds the mutex.
func (d *deliverer) aim(e *worker, at storedEndpoint) bool {
	e.failing, at.failing = e.failing || at.failing, false // at may be older than the last result
	if e.target != nil && e.target.stored == at {
		return true
	}
	var err error
	if e.target, err = d.newTarget(at); err != nil {
		d.log.Error("webhook endpoint cannot be used; its deliveries wait", "event", "endpoint_unusable", "company_id",
			e.company, "error", err)
		e.pausedUntil = time.Now().Add(brokenPause)
	}
	return err == nil
}

// deliver is a caller: it makes one attempt at each waiting delivery. It also ends when the endpoint turns slow or
// quick, or may have fewer callers.
func (d *deliverer) deliver(e *worker, slow bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(e.waiting) > 0 && e.slow == slow && e.callers <= e.limit {
		j := e.waiting[0]
		e.waiting = e.waiting[1:]
		if e.queued {
			d.signal()
		}
		if d.stopping {
			j.beginBy = time.Time{}
		}
		d.mu.Unlock()
		d.attempt(e, j)
		d.mu.Lock()
	}
	d.occupy(e, slow, -1)
	d.begin(e)
	d.signal()
	d.ended.Signal()
}

// releaseWaiting ends the time in which a company's waiting deliveries may be called: they were claimed before the
// endpoint changed.
func (d *deliverer) releaseWaiting(company string) {
	id, _ := strconv.ParseInt(company, 10, 64)
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.workers[id]; e != nil {
		for i := range e.waiting {
			e.waiting[i].beginBy = time.Time{}
		}
	}
}

// signal wakes claimLoop.
func (d *deliverer) signal() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// attempt makes one attempt and passes its result to record. It makes no attempt that could outlast the claim. An
// attempt that the shutdown cuts off does not count: the delivery is released.
func (d *deliverer) attempt(e *worker, j *job) {
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()
	r := outcome{job: *j}
	if time.Now().Before(j.beginBy) && d.aimCallback(&r.job) {
		if attempt, took, ok := d.call(d.calling, r.target, &j.storedEvent, false); ok {
			success := attempt.Result == result2xx
			r.attempt = attempt
			r.state, r.delay = schedule(d.opts.RetryDelays).after(j.tries+1, success, attempt.retryAfter)
			d.metrics.attempts[eventName(j.id)][attempt.Result].Inc()
			d.metrics.duration.Observe(took.Seconds())
			if r.state == exhausted {
				d.metrics.givenUp.Inc()
			}
			d.logAttempt(r)
			d.mu.Lock()
			e.learn(success, took, d.opts.fewCalls(), d.opts.mostCalls())
			d.mu.Unlock()
		}
	}
	r.ended = time.Now()
	d.outcomes <- r
}

// aimCallback gives a callback its target; false if that takes facts that cannot be read now.
func (d *deliverer) aimCallback(j *job) bool {
	if j.callback == "" {
		return true
	}
	var err error
	if j.target, err = d.callbackTarget(d.calling, &j.storedEvent); err != nil {
		d.log.Warn("what a callback reports cannot be read; trying again", "event", "callback_facts_unread", "company_id",
			companyOf(j.company), "error", err)
	}
	return err == nil
}

// logAttempt logs an attempt at level debug, and at level warn when it gives up the delivery. It looks up the message's
// ULID only for lines that are written.
func (d *deliverer) logAttempt(r outcome) {
	host := r.target.host
	if r.attempt.Result != result2xx { // from the first failure on; the log merges repeats per endpoint
		d.log.Warn("webhook calls to an endpoint fail; they are tried again", "event", "webhook_call_failed", "company_id",
			companyOf(r.company), "host", host,
			"result", r.attempt.Result, "error", r.attempt.Error)
	}
	if r.state != exhausted && !d.log.Enabled(d.calling, slog.LevelDebug) {
		return
	}
	about := "message_id"
	if r.data != "" {
		about = "number"
	}
	fields := []any{about, messageOf(r.id), "webhook_id", webhookID(r.id), "company_id", companyOf(r.company),
		"webhook_event", eventName(r.id),
		"host", host, "attempt", r.tries + 1, "result", r.attempt.Result}
	if d.opts.Name != nil && r.data == "" {
		if name := d.opts.Name(d.calling, messageOf(r.id)); name != "" {
			fields = append([]any{"id", name}, fields...)
		}
	}
	if r.state == exhausted {
		d.log.Warn("webhook delivery given up", append([]any{"event", "webhook_given_up"}, fields...)...)
	} else {
		d.log.Debug("webhook attempt", fields...)
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
