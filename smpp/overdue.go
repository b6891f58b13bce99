package smpp

import (
	"slices"
	"time"
)

// Overdue returns the keys (Submit.Key) of what the carrier has left
// unanswered past Options.ResponseTimeout, in no order.
func (l *Link) Overdue() (keys []uint64) {
	for _, s := range l.current() {
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

// GiveUp ends overdue submits with these keys as NoAnswer before UnknownHold is
// over, with why as their Err: the caller has learnt by another way what became
// of them. Their slots are free again. Keys that are not overdue, or answered
// meanwhile, are left alone; an answer that comes yet is counted as unmatched.
func (l *Link) GiveUp(why error, keys ...uint64) {
	now := time.Now()
	for _, s := range l.current() {
		var given []*pending
		s.mu.Lock()
		for sequence, p := range s.pending {
			if p.overdue && slices.Contains(keys, p.key) {
				given = append(given, s.takeLocked(sequence))
			}
		}
		s.mu.Unlock()
		for _, p := range given {
			s.giveUp(p, now, why)
		}
	}
}

// current are the link's sessions as they are now.
func (l *Link) current() []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sessions)
}
