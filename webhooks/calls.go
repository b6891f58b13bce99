package webhooks

import (
	"log/slog"
	"time"
)

// run makes one call after the other for an endpoint. It gives back what is left when the
// endpoint has changed, has turned slow, or may have fewer calls at a time.
func (d *deliverer) run(e *worker, jobs []job, t *target, s *slot) {
	defer d.calls.Done()
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()
	late := time.AfterFunc(quickAnswer, func() { d.markSlow(e, s) })
	defer late.Stop()
	for going := true; going; {
		took, success, called := d.deliver(e.company, t, jobs[0])
		if called {
			jobs = jobs[1:]
		}
		d.mu.Lock()
		if called {
			e.learn(success, took, d.opts.PerEndpoint, d.opts.PerEndpointMax)
		}
		going = called && len(jobs) > 0 && !d.stopping && e.changed == s.changed && e.class == s.class && e.runs <= e.limit
		if going {
			s.started = time.Now()
			late.Reset(quickAnswer)
		} else {
			s.over = true
			e.runs--
			d.free[s.class]++
		}
		roomy := !going && len(d.queue) > 0
		d.mu.Unlock()
		if roomy {
			d.wakeUp()
		}
	}
	for _, r := range giveBack(e.company, jobs) {
		d.results <- r
	}
}

// giveBack returns results that end the claims of deliveries that were not called.
func giveBack(company int64, jobs []job) (back []result) {
	for _, j := range jobs {
		back = append(back, result{job: j, endpoint: callee{company: company}, state: returned})
	}
	return back
}

// markSlow makes an endpoint slow when a call has not been answered within
// quickAnswer, without waiting for the timeout. If the slow class has a free slot, the
// call moves there and frees its slot for others.
func (d *deliverer) markSlow(e *worker, s *slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.over || time.Since(s.started) < quickAnswer {
		return // that call has just ended; the slot may hold another one
	}
	e.class, e.limit = slow, d.opts.PerEndpoint
	if from := s.class; from != slow && d.free[slow] > 0 {
		s.class = slow
		d.free[slow]--
		d.free[from]++
		d.wakeUp()
	}
}

// deliver makes one attempt and passes its result to record. called is false when no
// call was made, or shutdown ended it.
func (d *deliverer) deliver(company int64, t *target, j job) (took time.Duration, success, called bool) {
	if time.Now().After(j.beginBy) {
		return 0, false, false
	}
	attempt, took, ok := d.caller.call(t, &j)
	if !ok {
		return 0, false, false
	}
	success = attempt.Result == result2xx
	r := result{job: j, endpoint: callee{company, t.stored.url}, attempt: attempt, ended: time.Now()}
	r.state, r.delay = d.schedule.after(j.tries+1, success)
	d.metrics.attempt(eventName(j.id), attempt.Result, took)
	if r.state == exhausted {
		d.metrics.exhausted.Inc()
	}
	d.logAttempt(company, t, r)
	d.results <- r
	return took, success, true
}

// logAttempt logs an attempt at level debug, and at level warn when the delivery is
// given up after it. The message's ULID is looked up only for lines that are written.
func (d *deliverer) logAttempt(company int64, t *target, r result) {
	level, what := slog.LevelDebug, "webhook attempt"
	if r.state == exhausted {
		level, what = slog.LevelWarn, "webhook delivery given up"
	}
	if r.attempt.Result != "2xx" { // from the first failure on; the log merges repeated lines about one endpoint
		d.log.Warn("webhook calls to an endpoint fail; they are tried again", "company_id", company, "host", t.host, "result", r.attempt.Result)
	}
	if !d.log.Enabled(d.calling, level) {
		return
	}
	about := "message_id"
	if r.data != "" {
		about = "number"
	}
	fields := []any{about, messageOf(r.id), "webhook_id", webhookID(r.id), "company_id", company, "event", eventName(r.id),
		"host", t.host, "attempt", r.tries + 1, "result", r.attempt.Result}
	if d.opts.Name != nil && r.data == "" {
		if name := d.opts.Name(d.calling, messageOf(r.id)); name != "" {
			fields = append([]any{"id", name}, fields...)
		}
	}
	d.log.Log(d.calling, level, what, fields...)
}
