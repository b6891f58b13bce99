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

// gather waits while more to settle keeps coming and nobody waits for what is
// there: no link whose window is half used up, and no carrier that delivers its
// next receipt only when the last one is answered. At a few hundred messages a
// second a transaction then settles several of them, and not each answer and
// each receipt by itself.
func (s *settler) gather(ctx context.Context) {
	gap := time.NewTimer(gatherGap)
	defer gap.Stop()
	for end := time.Now().Add(gatherMost); !s.pressed(); {
		gap.Reset(min(gatherGap, time.Until(end)))
		select {
		case <-s.wake:
		case <-gap.C:
			return
		case <-ctx.Done():
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
	if len(s.receipts) > 0 && s.haste.is(time.Now()) {
		return true
	}
	for _, r := range s.results {
		if r.journey.lane.slots.scarce() {
			return true
		}
	}
	return false
}

// answered notes that deliveries were answered just now.
func (s *settler) answered() {
	s.mu.Lock()
	s.haste.last = time.Now()
	s.mu.Unlock()
}

const (
	hasteGap   = 2 * time.Millisecond // a delivery that comes so soon waited for the answer to another
	hasteSure  = 8                    // so many in a row, and it is so
	hasteLasts = time.Second
)

// haste finds out whether a carrier waits for our answers to deliver more.
type haste struct {
	last  time.Time // when deliveries were last answered
	soon  int       // so many first ones came right behind an answer
	until time.Time
}

// delivered notes a delivery; first says that no other waits to be settled.
func (h *haste) delivered(now time.Time, first bool) {
	switch {
	case !first:
	case now.Sub(h.last) > hasteGap:
		h.soon = 0
	default:
		if h.soon++; h.soon >= hasteSure {
			h.soon, h.until = 0, now.Add(hasteLasts)
		}
	}
}

func (h *haste) is(now time.Time) bool { return now.Before(h.until) }
