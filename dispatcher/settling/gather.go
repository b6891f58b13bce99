package settling

import (
	"context"
	"time"

	"intumwa/dispatcher/core"
)

const (
	// gatherMost is how long an answer or a receipt may wait for others to share
	// its transaction.
	gatherMost = 50 * time.Millisecond
	// gatherGap is how long it waits for the next one.
	gatherGap = 20 * time.Millisecond
	// gatherEnough answers and receipts are settled without waiting for more.
	gatherEnough = 64
)

// gather waits while answers and receipts keep coming and nothing depends on the
// settlement: no link's window is half used up, and the carrier does not wait for
// the last answer before its next receipt. At a few hundred messages a second one
// transaction then settles several. It sleeps until one of its two bounds, not until
// each of them comes.
func (s *Settler) gather(ctx context.Context) {
	start := time.Now()
	end := start.Add(gatherMost)
	timer := time.NewTimer(gatherMost)
	defer timer.Stop()
	for {
		last, receipts, wait := s.waits()
		if !wait {
			return
		}
		now := time.Now()
		if last.Before(start) {
			last = start
		}
		left := min(last.Add(gatherGap).Sub(now), end.Sub(now))
		if left <= 0 {
			if now.Before(end) { // none came for a while
				s.waited(receipts)
			}
			return
		}
		timer.Reset(left)
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// waits reports whether gather may wait, when the last result or receipt came, and how many receipts wait. A flow of
// answers does not hold up receipts.
func (s *Settler) waits() (last time.Time, receipts int, wait bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathering = !s.urgentLocked()
	if len(s.receipts) > 0 {
		return s.cameReceipt, len(s.receipts), s.gathering
	}
	return s.came, 0, s.gathering
}

// cameLocked wakes run when something came at a moment, unless it can wait in gather.
func (s *Settler) cameLocked(at time.Time) {
	if s.came = at; !s.gathering || s.urgentLocked() {
		core.Signal(s.wake)
	}
}

// urgentLocked reports whether the settlement must start now.
func (s *Settler) urgentLocked() bool {
	if len(s.results)+len(s.receipts) >= gatherEnough || len(s.late) > 0 || len(s.returned) > 0 {
		return true
	}
	if len(s.receipts) > 0 && time.Now().Before(s.lingering.until) {
		return true
	}
	for _, r := range s.results {
		if r.Message.Slots.Scarce() {
			return true
		}
	}
	return false
}

const (
	lingerTries = 8 // successive waits that ended in a gap with equally many receipts: lingering does not pay
	lingerPause = 5 * time.Second
)

// lingering detects whether waiting for more receipts pays. It does not where few come,
// nor where a carrier sends its next receipts, always equally many, only after the last
// are answered. Receipts are then settled at once for a while.
type lingering struct {
	last, same int // receipts of the last wait, and successive waits with that number
	until      time.Time
}

// waited records how many receipts a wait gathered.
func (s *Settler) waited(receipts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.lingering
	switch {
	case receipts == 0:
		return
	case receipts != h.last:
		h.last, h.same = receipts, 0
	}
	if h.same++; h.same >= lingerTries {
		h.same, h.until = 0, time.Now().Add(lingerPause)
	}
}
