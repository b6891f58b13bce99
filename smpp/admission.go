package smpp

import "context"

// submit admits p, waiting for a window slot and for room at the writer.
func (s *session) submit(ctx context.Context, p *pending) error {
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
			err = <-w.admitted // somebody was faster
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

// drainLocked admits nothing any more; what is admitted still goes out.
func (s *session) drainLocked() {
	s.draining = true
	s.refusal = ErrNotBound
	s.refuseLocked(ErrNotBound)
	s.changed.Broadcast()
}

// reconsider looks again at the window and the pace after a change of either.
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

// takeLocked takes an unanswered submit out of the table and passes its slot on.
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
