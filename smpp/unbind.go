package smpp

import (
	"fmt"
	"time"
)

// unbindGrace is how long we wait for responses in flight after the peer's unbind, before
// we send unbind_resp.
const unbindGrace = time.Second

// unbindRequested handles the peer's unbind: nothing more is written, and the bind ends
// the session. Submits that are not written yet end as NotWritten.
func (s *session) unbindRequested(sequence uint32) {
	s.mu.Lock()
	first := !s.peerUnbind
	s.peerUnbind, s.unbindSeq = true, sequence
	s.drainLocked()
	unwritten := s.withdrawLocked()
	s.mu.Unlock()
	s.returnUnwritten(unwritten, errPeerUnbind)
	if first {
		s.announce()
	}
}

// withdrawLocked removes every submit that the writer has not taken yet.
func (s *session) withdrawLocked() (unwritten []*pending) {
	for s.queue.len() > 0 {
		unwritten = append(unwritten, s.takeLocked(s.queue.pop().sequence))
	}
	return unwritten
}

// finish ends the session, by unbind where possible, waits for its goroutines and settles
// its remaining submits. why is the reason if the session has none of its own.
func (s *session) finish(why *closure) {
	s.mu.Lock()
	s.drainLocked()
	dead, unbinding := s.closing != nil, s.peerUnbind
	s.mu.Unlock()
	switch {
	case dead:
	case unbinding:
		s.yield()
	default:
		s.unbind(why)
	}
	s.running.Wait()
	s.settleRest()
}

// yield responds to the peer's unbind, after the responses that are due both ways or after unbindGrace, and lets the
// peer close.
func (s *session) yield() {
	s.await(unbindGrace, func() bool { return len(s.pending) == 0 && s.owed.Load() == 0 || s.hurried })
	why := &closure{reasonPeerUnbind, errPeerUnbind}
	s.mu.Lock()
	s.intended = why
	s.sendLocked(header{cmdUnbindResp, StatusOK, s.unbindSeq})
	s.mu.Unlock()
	s.await(unbindGrace, func() bool { return false }) // until the peer closes
	s.end(why)
}

// unbind drains the window and the deliveries, then unbinds and closes.
func (s *session) unbind(why *closure) {
	deadline := time.Now().Add(s.owner.drainTimeout)
	s.await(time.Until(deadline), func() bool { return len(s.pending) == 0 || s.hurried })
	s.refusing.Store(true)
	s.await(time.Until(deadline), func() bool { return s.owed.Load() == 0 || s.hurried })
	s.mu.Lock()
	unwritten := s.withdrawLocked() // submits that waited for the pace
	s.intended = why
	if s.peerUnbind { // its unbind came first
		s.unbound = true
		s.sendLocked(header{cmdUnbindResp, StatusOK, s.unbindSeq})
	} else {
		s.sendLocked(header{cmdUnbind, StatusOK, s.nextSequenceLocked()})
	}
	s.mu.Unlock()
	s.returnUnwritten(unwritten, why.err)
	s.await(s.owner.unbindTimeout, func() bool { return s.unbound && len(s.control) == 0 && s.writerIdle })
	s.end(why)
}

// endWithin bounds an end that is under way or follows at once: it waits for responses for two
// thirds of d, and is over after d.
func (s *session) endWithin(d time.Duration) {
	time.AfterFunc(d*2/3, func() {
		s.mu.Lock()
		s.hurried = true
		s.changed.Broadcast()
		s.mu.Unlock()
	})
	time.AfterFunc(d, func() { s.end(&closure{reasonShutdown, ErrNotBound}) })
}

// await waits until the condition holds, the session ends or d passes.
func (s *session) await(d time.Duration, condition func() bool) {
	if d <= 0 {
		return
	}
	expired := false
	timer := time.AfterFunc(d, func() {
		s.mu.Lock()
		expired = true
		s.changed.Broadcast()
		s.mu.Unlock()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !expired && s.closing == nil && !condition() {
		s.changed.Wait()
	}
}

// settleRest settles the submits that an ended session leaves: those that were written
// completely may have arrived (NoAnswer), the others cannot have (NotWritten).
func (s *session) settleRest() {
	s.mu.Lock()
	cause, sent := s.closing, s.sent
	rest := s.pending
	s.pending = make(map[uint32]*pending)
	s.overdue = 0
	s.mu.Unlock()
	now := time.Now()
	why := fmt.Errorf("smpp: session ended: %w", cause.err)
	var unwritten []*pending
	unknown := 0
	for _, p := range rest {
		if p.order > sent {
			unwritten = append(unwritten, p)
			continue
		}
		unknown++
		s.giveUp(p, now, why)
	}
	s.returnUnwritten(unwritten, why)
	if unknown > 0 {
		s.owner.log.Warn("session ended with submit_sm unanswered; the carrier may have them", "event",
			"session_ended_unanswered",
			"count", unknown, "reason", cause.reason)
	}
}

// returnUnwritten ends submits as NotWritten.
func (s *session) returnUnwritten(unwritten []*pending, why error) {
	for _, p := range unwritten {
		r := Result{Outcome: NotWritten, Err: why}
		s.owner.metrics.answered(r)
		p.finish(r)
	}
}
