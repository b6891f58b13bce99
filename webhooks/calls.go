package webhooks

import (
	"log/slog"
	"time"
)

// begin starts as many calls of an endpoint as its limit and the free slots of its
// class allow. Without a free slot the endpoint waits in line. The caller holds the
// mutex.
func (d *deliverer) begin(e *endpointWorker) {
	for d.mayBegin(e) {
		s := &d.slots[e.class]
		if s.free == 0 {
			if !e.inLine {
				e.inLine = true
				s.line = append(s.line, e)
			}
			return
		}
		d.beginOne(e)
	}
}

func (d *deliverer) mayBegin(e *endpointWorker) bool {
	return !d.stopping && len(e.waiting) > 0 && e.calls < e.limit && e.target != nil && d.delivering()
}

// beginOne starts an endpoint's next call in a free slot of its class.
func (d *deliverer) beginOne(e *endpointWorker) {
	d.slots[e.class].free--
	e.calls++
	d.calls.Add(1)
	d.waiting--
	go d.run(e, e.next(), e.target, &slot{class: e.class, started: time.Now()})
}

// run makes one call after the other for an endpoint until none is left or another
// endpoint waits for the slot.
func (d *deliverer) run(e *endpointWorker, j job, t *target, s *slot) {
	defer d.calls.Done()
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()
	late := time.AfterFunc(quickAnswer, func() { d.markSlow(e, s) })
	defer late.Stop()
	for going := true; going; {
		took, success, called := d.deliver(e.company, t, j)

		d.mu.Lock()
		if called {
			e.learn(success, took, d.opts.PerEndpoint, d.opts.PerEndpointMax)
		} else if j.term == d.term {
			e.putBack(j)
			d.waiting++
		}
		if going = d.keepsSlot(e, s); going {
			j, t, s.started = e.next(), e.target, time.Now()
			d.waiting--
			late.Reset(quickAnswer)
		} else {
			s.over = true
			e.calls--
			d.slots[s.class].free++
			d.assignSlots(s.class)
		}
		d.begin(e)
		roomy := len(d.fetchQueue) > 0 && (!going || e.inFetchQueue && e.fetchLimit() > 0)
		d.mu.Unlock()
		if roomy {
			d.wakeUp()
		}
	}
}

// keepsSlot reports whether an endpoint may keep a slot for its next call.
func (d *deliverer) keepsSlot(e *endpointWorker, s *slot) bool {
	return !d.stopping && len(e.waiting) > 0 && e.target != nil && d.delivering() &&
		e.class == s.class && e.calls <= e.limit && len(d.slots[s.class].line) == 0
}

// markSlow makes an endpoint slow when a call has not been answered within
// quickAnswer, without waiting for the timeout. If the slow class has a free slot, the
// call moves there and frees its slot for others.
func (d *deliverer) markSlow(e *endpointWorker, s *slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.over || time.Since(s.started) < quickAnswer {
		return // that call has just ended; the slot may hold another one
	}
	e.class, e.limit = slow, d.opts.PerEndpoint
	if from := s.class; from != slow && d.slots[slow].free > 0 {
		s.class = slow
		d.slots[slow].free--
		d.slots[from].free++
		d.assignSlots(from)
		d.wakeUp()
	}
}

// assignSlots gives free slots of a class to the endpoints in line, one call each in turn.
func (d *deliverer) assignSlots(of class) {
	s := &d.slots[of]
	for turns := len(s.line); turns > 0 && s.free > 0; turns-- {
		e := s.next()
		if e.class != of { // its class has changed meanwhile
			d.begin(e)
			continue
		}
		if !d.mayBegin(e) {
			continue
		}
		d.beginOne(e)
		if d.mayBegin(e) && !e.inLine {
			e.inLine = true
			s.line = append(s.line, e)
		}
	}
}

// wakeUp wakes take.
func (d *deliverer) wakeUp() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// deliver makes one attempt and passes its result to record. called is false when no
// call was made, or shutdown ended it.
func (d *deliverer) deliver(company int64, t *target, j job) (took time.Duration, success, called bool) {
	if !d.delivering() {
		return 0, false, false
	}
	attempt, took, ok := d.caller.call(t, &j)
	if !ok {
		return 0, false, false
	}
	success = attempt.Result == result2xx
	r := result{job: j, endpoint: callee{company, t.storedURL}, attempt: attempt, ended: time.Now()}
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
