package smpp

import "context"

// submit encodes m, which must be valid, as the request that this end sends, and admits it.
func (s *session) submit(ctx context.Context, m *Submit, optional bool, done func(Result)) error {
	p := newPending(m.Key, done)
	if err := encodeMessage(&p.frame, s.owner.sends, m, optional); err != nil {
		p.recycle()
		return err
	}
	return s.admit(ctx, p)
}

// admit admits p, waiting for a window slot and for room at the writer.
func (s *session) admit(ctx context.Context, p *pending) error {
	s.mu.Lock()
	if err := s.refusal; err != nil {
		s.mu.Unlock()
		p.recycle()
		return err
	}
	if s.waiting.len() == 0 && s.roomLocked() {
		s.admitLocked(p)
		s.wakeLocked()
		s.mu.Unlock()
		return nil
	}
	w := &waiter{p, make(chan error, 1)}
	s.waiting.push(w)
	s.mu.Unlock()

	var err error
	select {
	case err = <-w.admitted:
	case <-ctx.Done():
		s.mu.Lock()
		gone := s.waiting.removeFunc(func(x *waiter) bool { return x == w })
		s.mu.Unlock()
		if gone {
			err = ctx.Err()
		} else {
			err = <-w.admitted // admitted by another goroutine meanwhile
		}
	}
	if err != nil {
		p.recycle()
	}
	return err
}

// roomLocked reports whether one more submit may be admitted.
func (s *session) roomLocked() bool {
	return len(s.pending) < int(s.owner.window.Load()) && s.queue.len() < s.owner.pace.room()
}

// admitLocked gives p a sequence_number, a place in the table and one in the
// writer's queue.
func (s *session) admitLocked(p *pending) {
	p.sequence = s.nextSequenceLocked()
	patchSequence(p.frame, p.sequence)
	s.order++
	p.order = s.order
	s.pending[p.sequence] = p
	s.queue.push(p)
}

// nextSequenceLocked counts from 1 to 0x7FFFFFFF and around, skipping what is
// still unanswered, given up or not.
func (s *session) nextSequenceLocked() uint32 {
	for {
		s.sequence = s.sequence%maxSequence + 1
		if s.pending[s.sequence] == nil && !s.given.has(s.sequence) {
			return s.sequence
		}
	}
}

// admitWaitingLocked admits as many waiting submits as there is room for.
func (s *session) admitWaitingLocked() {
	if s.draining || s.waiting.len() == 0 {
		return
	}
	for s.waiting.len() > 0 && s.roomLocked() {
		w := s.waiting.pop()
		s.admitLocked(w.p)
		w.admitted <- nil
		s.wakeLocked()
	}
}

// refuseLocked refuses every waiting submit.
func (s *session) refuseLocked(err error) {
	for s.waiting.len() > 0 {
		s.waiting.pop().admitted <- err
	}
}

// hold refuses submits while the bind is paused.
func (s *session) hold(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
	case paused:
		s.refusal = ErrPaused
		s.refuseLocked(ErrPaused)
	default:
		s.refusal = nil
	}
}

// drainLocked stops admitting submits; those already admitted are still written.
func (s *session) drainLocked() {
	s.draining = true
	s.refusal = ErrNotBound
	s.refuseLocked(ErrNotBound)
	s.changed.Broadcast()
}

// reconsider admits and writes again after a change of the window or the pace.
func (s *session) reconsider() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admitWaitingLocked()
	s.wakeLocked()
}

// wakeLocked wakes the writer if it sleeps.
func (s *session) wakeLocked() {
	if !s.writerIdle {
		return
	}
	s.writerIdle = false
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// takeLocked removes an unanswered submit from the table and gives its slot to the next waiting one.
func (s *session) takeLocked(sequence uint32) *pending {
	p := s.pending[sequence]
	if p == nil {
		return nil
	}
	delete(s.pending, sequence)
	if p.overdue {
		s.overdue--
	}
	s.admitWaitingLocked()
	if s.draining {
		s.changed.Broadcast()
	}
	return p
}

// load returns how full the session is.
func (s *session) load() (inFlight, waiting, overdue int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending), s.waiting.len(), s.overdue
}
