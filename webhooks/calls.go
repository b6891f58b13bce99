package webhooks

import "time"

// begin starts as many calls of an endpoint as it may have, as far as its class
// has slots; else the endpoint stands in line for one. The caller holds the mutex.
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

// beginOne starts an endpoint's next call in a slot of its class, which has one.
func (d *deliverer) beginOne(e *endpointWorker) {
	d.slots[e.class].free--
	e.calls++
	d.calls.Add(1)
	d.waiting--
	go d.run(e, e.next(), e.target, &slot{class: e.class, started: time.Now()})
}

// run makes one call after the other for an endpoint until there is none, or the
// slot is another endpoint's turn.
func (d *deliverer) run(e *endpointWorker, j job, t *target, s *slot) {
	defer d.calls.Done()
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()
	late := time.AfterFunc(quickAnswer, func() { d.late(e, s) })
	defer late.Stop()
	for going := true; going; {
		took, success, called := d.deliver(e.company, t, j)

		d.mu.Lock()
		if called {
			e.observe(success, took, d.opts.PerEndpoint, d.opts.PerEndpointMax)
		} else if j.term == d.term {
			e.putBack(j)
			d.waiting++
		}
		if going = d.goesOn(e, s); going {
			j, t, s.started = e.next(), e.target, time.Now()
			d.waiting--
			late.Reset(quickAnswer)
		} else {
			s.over = true
			e.calls--
			d.slots[s.class].free++
			d.serve(s.class)
		}
		d.begin(e)
		roomy := len(d.wanting) > 0 && (!going || e.wanting && e.room() > 0)
		d.mu.Unlock()
		if roomy {
			d.rouse()
		}
	}
}

// goesOn says whether an endpoint may keep a slot for its next call.
func (d *deliverer) goesOn(e *endpointWorker, s *slot) bool {
	return !d.stopping && len(e.waiting) > 0 && e.target != nil && d.delivering() &&
		e.class == s.class && e.calls <= e.limit && len(d.slots[s.class].line) == 0
}

// late judges an endpoint that has not answered for a while without waiting for
// the timeout: it is slow, and its call goes over to the slots of the slow while
// there are any, so that the slot it began in is free for others.
func (d *deliverer) late(e *endpointWorker, s *slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.over || time.Since(s.started) < quickAnswer {
		return // that call has just ended; if there is one, it is another
	}
	e.class, e.limit = slow, d.opts.PerEndpoint
	if from := s.class; from != slow && d.slots[slow].free > 0 {
		s.class = slow
		d.slots[slow].free--
		d.slots[from].free++
		d.serve(from)
		d.rouse()
	}
}

// serve gives free slots of a class to the endpoints in line, one call each in turn.
func (d *deliverer) serve(of class) {
	s := &d.slots[of]
	for turns := len(s.line); turns > 0 && s.free > 0; turns-- {
		e := s.next()
		if e.class != of { // it has been moved meanwhile
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

// rouse lets the taking loop see that there is room, or something to do.
func (d *deliverer) rouse() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// deliver makes one attempt and passes its result on. called is false when none
// was made, or shutdown cut it short.
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
