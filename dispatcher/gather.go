package dispatcher

import (
	"context"
	"time"
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
// transaction then settles several.
func (s *settler) gather(ctx context.Context) {
	now := time.Now()
	end, receipts, since := now.Add(gatherMost), s.receiptsWaiting(), now
	timer := time.NewTimer(gatherMost)
	defer timer.Stop()
	for !s.urgent() {
		wait := min(gatherGap, time.Until(end))
		if receipts > 0 { // a flow of answers does not hold them up
			wait = min(wait, time.Until(since.Add(gatherGap)))
		}
		timer.Reset(wait)
		more := false
		select {
		case <-s.wake:
			more = true
		case <-timer.C:
		case <-ctx.Done():
		}
		if n := s.receiptsWaiting(); n != receipts {
			receipts, since = n, time.Now()
		}
		if !more {
			if time.Now().Before(end) { // none came for a while
				s.waited(receipts)
			}
			return
		}
	}
}

// urgent reports whether the settlement must start now.
func (s *settler) urgent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.results)+len(s.receipts) >= gatherEnough || len(s.late) > 0 || len(s.returned) > 0 {
		return true
	}
	if len(s.receipts) > 0 && time.Now().Before(s.lingering.until) {
		return true
	}
	for _, r := range s.results {
		if r.message.worker.slots.scarce() {
			return true
		}
	}
	return false
}

func (s *settler) receiptsWaiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.receipts)
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
func (s *settler) waited(receipts int) {
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
