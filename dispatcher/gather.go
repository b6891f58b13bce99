package dispatcher

import (
	"context"
	"time"
)

const (
	// gatherMost is how long an answer or a receipt may wait for others, to be
	// settled with them in one transaction.
	gatherMost = 20 * time.Millisecond
	// gatherGap is how long it waits for the next one.
	gatherGap = 5 * time.Millisecond
	// gatherEnough is how many are settled without waiting for more.
	gatherEnough = 64
)

// gather waits while more to settle keeps coming and nothing depends on what is
// there: no link whose window is half used up, and no carrier that delivers its
// next receipt only when the last is answered. At a few hundred messages a second
// a transaction then settles several of them, and not each answer and each
// receipt by itself.
func (s *settler) gather(ctx context.Context) {
	now := time.Now()
	end, receipts, since := now.Add(gatherMost), s.receiptsWaiting(), now
	timer := time.NewTimer(gatherMost)
	defer timer.Stop()
	for !s.pressed() {
		wait := min(gatherGap, time.Until(end))
		if receipts > 0 { // answers that keep coming do not hold them up
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
			s.waited(receipts)
			return
		}
	}
}

// pressed tells whether somebody waits for what is to be settled.
func (s *settler) pressed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.results)+len(s.receipts) >= gatherEnough || len(s.late) > 0 || len(s.returned) > 0 {
		return true
	}
	if len(s.receipts) > 0 && time.Now().Before(s.urgency.until) {
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
	urgencySure  = 8 // so many waits in a row brought no second receipt, and it is so
	urgencyLasts = time.Second
)

// urgency finds out whether waiting brings receipts together. It does not where few
// come, nor where a carrier delivers the next only when the last is answered, and
// that one has to be answered soon.
type urgency struct {
	alone int // so many waits in a row that brought one receipt
	until time.Time
}

// waited notes how many receipts a wait brought together.
func (s *settler) waited(receipts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch h := &s.urgency; {
	case receipts > 1:
		h.alone = 0
	case receipts == 1:
		if h.alone++; h.alone >= urgencySure {
			h.alone, h.until = 0, time.Now().Add(urgencyLasts)
		}
	}
}
