package webhooks

import (
	"context"
	"log/slog"
	"strconv"
	"time"
)

const (
	quickAnswer = time.Second      // an endpoint that takes longer is slow
	fewCalls    = 4                // of one endpoint at a time, after its first call and after a failure
	mostCalls   = 32               // of one endpoint at a time, while it responds quickly
	brokenPause = 30 * time.Second // pause for an endpoint whose secret cannot be read

	// ahead is how many deliveries of a quick endpoint are claimed per call: each claim costs a commit.
	ahead = 8
)

// worker calls one endpoint. The deliverer's mutex guards it.
type worker struct {
	company     int64
	target      *target // of the last claim; nil: none, or unusable
	failing     bool    // its last call failed
	pausedUntil time.Time
	known       bool // a call has ended
	slow        bool // the last call took longer than quickAnswer
	limit       int  // concurrent callers
	callers     int  // goroutines that call
	waiting     []job
	queued      bool // in deliverer.queue
	from        position
}

// newWorker makes a worker that is limited to one caller until its first call has ended.
func newWorker(company int64) *worker { return &worker{company: company, limit: 1} }

// most returns how many deliveries, in flight or waiting, that many callers may have.
func (e *worker) most(callers int) int {
	if e.quick() {
		return callers * ahead
	}
	return callers
}

// room returns how many more deliveries the worker may get.
func (e *worker) room() int { return e.most(e.limit) - e.callers - len(e.waiting) }

// quick reports whether the last calls were quick successes.
func (e *worker) quick() bool { return e.known && !e.slow && !e.failing && e.limit > fewCalls }

// learn adjusts the limit after an attempt: a quick success raises it by one, up to most; a failure or a slow response
// resets it to few.
func (e *worker) learn(success bool, took time.Duration, few, most int) {
	e.slow = took > quickAnswer
	if e.slow || !success || !e.known {
		e.limit = few
	} else if e.limit < most {
		e.limit++
	}
	e.known = true
}

// plan removes the endpoints with room from the queue. An endpoint has room when half of what it may have is free, so
// that claims stay large. While all calls are taken, no endpoint gets more: waiting deliveries go first, and then their
// callers are free for the queue's next endpoints.
func (d *deliverer) plan() (wishes []wish) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var left []*worker
	free, freeSlow := d.free, d.freeSlow
	for _, e := range d.queue {
		if time.Now().Before(e.pausedUntil) {
			e.queued = false
			continue
		}
		d.begin(e)
		callers := min(e.limit-e.callers, free)
		if e.slow {
			callers = min(callers, freeSlow)
		}
		callers = max(0, callers)
		most := e.most(e.callers+callers) - e.callers - len(e.waiting)
		if free == 0 || 2*e.room() < e.most(e.limit) || most <= 0 || len(wishes) == claimCompanies {
			left = append(left, e)
			continue
		}
		e.queued = false
		free -= callers
		if e.slow {
			freeSlow -= callers
		}
		wishes = append(wishes, wish{worker: e, from: e.from, most: most})
	}
	d.queue = left
	return wishes
}

// takes sets taken for the new deliveries that this process may claim: their company's endpoint is quick and has room,
// and no older deliveries wait for it.
func (d *deliverer) takes(companies []int64, taken []bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := map[int64]int{} // room after the deliveries so far
	for i, company := range companies {
		room, seen := left[company]
		if e := d.workers[company]; !seen && e != nil && e.quick() && !e.queued && d.free > 0 && time.Now().After(e.pausedUntil) {
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
	for i := range calls.results {
		calls.results[i].ended = time.Now()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastStatement)
	defer cancel()
	_ = d.store(ctx, calls.results) // on failure another process ends them
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

// occupy counts an endpoint's callers.
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
		d.log.Error("webhook endpoint cannot be used; its deliveries wait", "event", "endpoint_unusable", "company_id", e.company, "error", err)
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
func (d *deliverer) attempt(e *worker, j job) {
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()
	r := result{job: j}
	if time.Now().Before(j.beginBy) {
		if attempt, took, ok := d.call(d.calling, j.target, &j, false); ok {
			success := attempt.Result == result2xx
			r.attempt = attempt
			r.state, r.delay = d.schedule.after(j.tries+1, success)
			d.metrics.attempt(eventName(j.id), attempt.Result, took)
			if r.state == exhausted {
				d.metrics.exhausted.Inc()
			}
			d.logAttempt(r)
			d.mu.Lock()
			e.learn(success, took, d.opts.fewCalls(), d.opts.mostCalls())
			d.mu.Unlock()
		}
	}
	r.ended = time.Now()
	d.results <- r
}

// logAttempt logs an attempt at level debug, and at level warn when it gives up the delivery. It looks up the message's
// ULID only for lines that are written.
func (d *deliverer) logAttempt(r result) {
	host := r.target.host
	if r.attempt.Result != result2xx { // from the first failure on; the log merges repeats per endpoint
		d.log.Warn("webhook calls to an endpoint fail; they are tried again", "event", "webhook_call_failed", "company_id", r.company, "host", host, "result", r.attempt.Result)
	}
	if r.state != exhausted && !d.log.Enabled(d.calling, slog.LevelDebug) {
		return
	}
	about := "message_id"
	if r.data != "" {
		about = "number"
	}
	fields := []any{about, messageOf(r.id), "webhook_id", webhookID(r.id), "company_id", r.company, "webhook_event", eventName(r.id),
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
