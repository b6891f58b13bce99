package smpp

import (
	"fmt"
	"time"
)

// probe is the one enquire_link that may be unanswered.
type probe struct {
	outstanding bool
	sequence    uint32
	at          time.Time
}

// keep detects missing responses and a silent peer. It is one goroutine for each
// session; PDUs have no timers of their own.
func (s *session) keep() {
	tick := time.NewTicker(min(max(s.owner.shortest()/10, 10*time.Millisecond), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-s.dead:
			return
		case now := <-tick.C:
			doubt := s.sweep(now)
			if why := s.probePeer(now, doubt); why != nil {
				s.end(why)
				return
			}
			if s.idle(now) {
				s.retire(&closure{reasonInactive, fmt.Errorf("no request for %s", s.owner.inactivity)})
			}
		}
	}
}

// idle reports whether nothing happens in the session for longer than it may. Answers to our own enquire_link are not
// enough: a program sends those without doing anything. An enquire_link of its own is: it wants the session.
func (s *session) idle(now time.Time) bool {
	if s.owner.inactivity == 0 || now.Sub(s.active.get()) < s.owner.inactivity {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) == 0 && s.waiting.len() == 0 && s.owed.Load() == 0
}

// sweep marks submits overdue after ResponseTimeout and gives them up after
// UnknownHold. In between they keep their window slots: the bind is alive, so the
// carrier is slow, and sending them again would make duplicates.
//
// A submit is given up only if the peer sent bytes after its UnknownHold. Otherwise
// the session may be dead, and each freed slot would cost another submit with unknown
// outcome. doubt means that submits wait for such a sign of life.
func (s *session) sweep(now time.Time) (doubt bool) {
	b := s.owner
	var given []*pending
	late := 0
	heard := s.heard.get()
	s.mu.Lock()
	for sequence, p := range s.pending {
		if p.written.IsZero() {
			continue
		}
		age := now.Sub(p.written)
		if !p.overdue && age >= b.responseTimeout {
			p.overdue = true
			s.overdue++
			late++
		}
		switch over := p.written.Add(b.unknownHold); {
		case now.Before(over):
		case heard.Before(over):
			doubt = true
		default:
			given = append(given, s.takeLocked(sequence))
			s.given.put(sequence, p)
		}
	}
	overdue, inFlight := s.overdue, len(s.pending)
	s.mu.Unlock()
	if late > 0 {
		b.metrics.timeouts.Add(float64(late))
		b.log.Warn("submit_sm unanswered past the response timeout; their window slots are kept", "event",
			"submit_unanswered",
			"newly", late, "overdue", overdue, "in_flight", inFlight)
	}
	if len(given) > 0 {
		b.log.Error("submit_sm given up unanswered; the carrier may have them", "event", "submit_given_up", "count",
			len(given))
	}
	for _, p := range given {
		s.giveUp(p, now, fmt.Errorf("smpp: no answer to submit_sm for %s", b.unknownHold))
	}
	return doubt
}

// giveUp ends a written submit as NoAnswer.
func (s *session) giveUp(p *pending, now time.Time, why error) {
	r := Result{Outcome: NoAnswer, Latency: now.Sub(p.written), Err: why}
	s.owner.metrics.answered(r)
	p.finish(r)
}

// probePeer sends an enquire_link after EnquireLink of silence, or at once if doubt is
// set (sweep). It ends the session after EnquireTimeout of further silence. Any byte
// counts as a sign of life.
func (s *session) probePeer(now time.Time, doubt bool) *closure {
	o := s.owner
	heard := s.heard.get()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probe.outstanding {
		if now.Sub(s.probe.at) < o.enquireTimeout {
			return nil
		}
		if heard.Before(s.probe.at) {
			s.owner.metrics.enquireTimeouts.Inc()
			return &closure{reasonEnquireTimeout,
				fmt.Errorf("no byte from the peer for %s, enquire_link unanswered", now.Sub(heard).Round(time.Millisecond))}
		}
		s.probe.outstanding = false // other bytes came: it is alive, but does not answer enquire_link
	}
	if doubt || now.Sub(heard) >= o.enquireLink {
		s.probe = probe{outstanding: true, sequence: s.nextSequenceLocked(), at: now}
		s.sendLocked(header{cmdEnquireLink, StatusOK, s.probe.sequence})
	}
	return nil
}

// probeAnswered handles enquire_link_resp; false when no enquire_link has this sequence_number.
func (s *session) probeAnswered(sequence uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.probe.outstanding || s.probe.sequence != sequence {
		return false
	}
	s.probe.outstanding = false
	s.owner.metrics.enquire.Observe(time.Since(s.probe.at).Seconds())
	return true
}
