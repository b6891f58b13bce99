package smpp

import (
	"slices"
	"time"
)

// abandoned remembers submits that were given up while their session lives, so that a
// late response finds its message. It keeps the latest 4096: a carrier that leaves more
// unanswered will not respond to the older ones.
type abandoned struct {
	bySequence map[uint32]gone
	order      fifo[uint32]
}

type gone struct {
	key     uint64
	written time.Time
}

const maxAbandoned = 4096

func (a *abandoned) put(sequence uint32, p *pending) {
	if p.key == 0 {
		return
	}
	if a.bySequence == nil {
		a.bySequence = make(map[uint32]gone)
	}
	a.bySequence[sequence] = gone{p.key, p.written}
	a.order.push(sequence)
	if a.order.len() > maxAbandoned {
		delete(a.bySequence, a.order.pop())
	}
}

func (a *abandoned) has(sequence uint32) bool {
	_, is := a.bySequence[sequence]
	return is
}

func (a *abandoned) take(sequence uint32) (gone, bool) {
	g, is := a.bySequence[sequence]
	delete(a.bySequence, sequence)
	return g, is
}

// settleLate passes the response to a given-up submit to OnLate.
func (s *session) settleLate(h header, id string, g gone) {
	b := s.owner
	b.metrics.late.Inc()
	if b.onLate != nil {
		b.onLate(g.key, s.result(h, id, g.written))
	}
}

// Overdue returns the keys (Submit.Key) of submits that are unanswered past
// Options.ResponseTimeout, in no order.
func (b *Bind) Overdue() (keys []uint64) {
	for _, s := range b.current() {
		s.mu.Lock()
		if s.overdue > 0 {
			for _, p := range s.pending {
				if p.overdue {
					keys = append(keys, p.key)
				}
			}
		}
		s.mu.Unlock()
	}
	return keys
}

// GiveUp ends the overdue submits with these keys as NoAnswer before UnknownHold, with
// why as their Err, because the caller has their fate from another source (a receipt).
// Their slots become free. Keys that are not overdue, or were answered meanwhile, are
// ignored; a response that still comes goes to OnLate.
func (b *Bind) GiveUp(why error, keys ...uint64) {
	now := time.Now()
	for _, s := range b.current() {
		var given []*pending
		s.mu.Lock()
		for sequence, p := range s.pending {
			if p.overdue && slices.Contains(keys, p.key) {
				given = append(given, s.takeLocked(sequence))
				s.given.put(sequence, p)
			}
		}
		s.mu.Unlock()
		for _, p := range given {
			s.giveUp(p, now, why)
		}
	}
}

// current returns the bind's current sessions.
func (b *Bind) current() []*session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sessions)
}
