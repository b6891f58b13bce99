package webhooks

import "time"

// start begins as many calls of a lane as it may have, as far as its class has
// slots; else the lane stands in line for one. The caller holds the mutex.
func (w *worker) start(l *lane) {
	for w.mayStart(l) {
		p := &w.pools[l.class]
		if p.free == 0 {
			if !l.inLine {
				l.inLine = true
				p.line = append(p.line, l)
			}
			return
		}
		w.begin(l)
	}
}

func (w *worker) mayStart(l *lane) bool {
	return !w.stopping && len(l.waiting) > 0 && l.calls < l.limit && l.target != nil
}

// begin starts a lane's next call in a slot of its class, which has one.
func (w *worker) begin(l *lane) {
	w.pools[l.class].free--
	l.calls++
	w.calls.Add(1)
	go w.run(l, l.take(), l.target, &slot{class: l.class, started: time.Now()})
}

// run makes one call after the other for a lane until there is none, or the
// slot is another lane's turn.
func (w *worker) run(l *lane, c claimed, t *target, s *slot) {
	defer w.calls.Done()
	w.metrics.inFlight.Inc()
	defer w.metrics.inFlight.Dec()
	for going := true; going; {
		late := time.AfterFunc(quickAnswer, func() { w.late(l, s) })
		took, success, called := w.deliver(l.company, t, c)
		late.Stop()

		w.mu.Lock()
		if called {
			l.observe(success, took, w.opts.PerEndpoint, w.opts.PerEndpointMax)
		} else if w.stopping {
			l.waiting = append(l.waiting, c) // its lease is handed back
		}
		if going = w.goesOn(l, s); going {
			c, t, s.started = l.take(), l.target, time.Now()
		} else {
			s.over = true
			l.calls--
			w.pools[s.class].free++
			w.serve(s.class)
		}
		w.start(l)
		roomy := len(w.hungry) > 0 && (!going || l.hungry && l.room() > 0)
		w.mu.Unlock()
		if roomy {
			w.rouse()
		}
	}
}

// goesOn says whether a lane may keep a slot for its next call.
func (w *worker) goesOn(l *lane, s *slot) bool {
	return !w.stopping && len(l.waiting) > 0 && l.target != nil &&
		l.class == s.class && l.calls <= l.limit && len(w.pools[s.class].line) == 0
}

// late judges an endpoint that has not answered for a while without waiting for
// the timeout: it is slow, and its call goes over to the slots of the slow while
// there are any, so that the slot it began in is free for others.
func (w *worker) late(l *lane, s *slot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.over || time.Since(s.started) < quickAnswer {
		return // that call has just ended; if there is one, it is another
	}
	l.class, l.limit = slow, w.opts.PerEndpoint
	if from := s.class; from != slow && w.pools[slow].free > 0 {
		s.class = slow
		w.pools[slow].free--
		w.pools[from].free++
		w.serve(from)
		w.rouse()
	}
}

// serve gives free slots of a class to the lanes in line, one call each in turn.
func (w *worker) serve(of class) {
	p := &w.pools[of]
	for turns := len(p.line); turns > 0 && p.free > 0; turns-- {
		l := p.next()
		if l.class != of { // it has been moved meanwhile
			w.start(l)
			continue
		}
		if !w.mayStart(l) {
			continue
		}
		w.begin(l)
		if w.mayStart(l) {
			l.inLine = true
			p.line = append(p.line, l)
		}
	}
}

// rouse lets the claiming loop see that there is room.
func (w *worker) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// deliver makes one attempt and passes its result on. called is false when none
// was made, or shutdown cut it short.
func (w *worker) deliver(company int64, t *target, c claimed) (took time.Duration, success, called bool) {
	if time.Until(c.lease) < w.opts.Timeout+leaseMargin/2 {
		return 0, false, false // it is taken again when its lease is over
	}
	attempt, took, ok := w.caller.call(w.calling, t, c.id, c.body)
	if !ok {
		return 0, false, false
	}
	success = attempt.Result == result2xx
	r := result{id: c.id, endpoint: callee{company, t.storedURL}, tries: c.tries, attempt: attempt}
	r.state, r.delay = w.schedule.after(c.tries+1, success)
	w.metrics.attempt(eventOf(c.id), attempt.Result, took)
	if r.state == exhausted {
		w.metrics.exhausted.Inc()
	}
	w.logAttempt(company, t, c, r)
	w.results <- r
	return took, success, true
}
