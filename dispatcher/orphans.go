package dispatcher

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/messages"
)

// inFlightMessages are the messages that this process has in flight: claimed, and
// not yet settled or given back.
//
// The database may know of more: a claim that was committed while its answer
// was lost. Such a message would not be carried as long as this process lives,
// so releaseOrphans finds and frees them, when a claim has failed.
type inFlightMessages struct {
	unsure atomic.Int64 // until when a claim that failed may be found committed, as time since processStart

	mu       sync.Mutex
	byID     map[int64]*inFlight         // by message
	suspects map[messages.Claim]struct{} // claimed and not in flight when last looked at
}

func newInFlightMessages() *inFlightMessages {
	return &inFlightMessages{byID: make(map[int64]*inFlight), suspects: make(map[messages.Claim]struct{})}
}

func (f *inFlightMessages) add(m *inFlight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byID[m.msg.ID] = m
}

// remove lets go of m. Another worker of this process may have claimed the message
// anew by then: that one stays.
func (f *inFlightMessages) remove(m *inFlight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID[m.msg.ID] == m {
		delete(f.byID, m.msg.ID)
	}
}

// get returns a message in flight; nil when it is not.
func (f *inFlightMessages) get(id int64) *inFlight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[id]
}

// orphaned are the claims that are in flight neither now nor the time
// before: a claim whose answer is just coming in is not among them.
func (f *inFlightMessages) orphaned(claims []messages.Claim) []messages.Claim {
	f.mu.Lock()
	defer f.mu.Unlock()
	suspects := make(map[messages.Claim]struct{})
	var orphans []messages.Claim
	for _, claim := range claims {
		if m := f.byID[claim.MessageID]; m != nil && m.msg.Epoch == claim.Epoch {
			continue
		}
		if _, again := f.suspects[claim]; again {
			orphans = append(orphans, claim)
		}
		suspects[claim] = struct{}{}
	}
	f.suspects = suspects
	return orphans
}

const (
	orphanInterval = 5 * time.Second // between two looks for orphaned claims, when there may be some
	orphanSeldom   = 5 * time.Minute // and when there should be none
	// unsureFor is how long after its answer was lost a claim may be committed.
	unsureFor = time.Minute
)

// claimFailed notes that a claim's answer was lost.
func (f *inFlightMessages) claimFailed() { f.unsure.Store(int64(time.Since(processStart) + unsureFor)) }

// mayHaveOrphans reports whether a claim's answer was lost lately.
func (f *inFlightMessages) mayHaveOrphans() bool {
	return int64(time.Since(processStart)) < f.unsure.Load()
}

// runOrphans looks for orphaned claims after a claim has failed: the look reads all
// that waits.
func (d *Dispatcher) runOrphans(ctx context.Context) {
	pause := orphanInterval
	for last := time.Now(); sleep(ctx, pause) == nil; {
		if pause = orphanInterval; !d.inFlight.mayHaveOrphans() && time.Since(last) < orphanSeldom {
			continue
		}
		last = time.Now()
		if err := d.releaseOrphans(ctx); err != nil && ctx.Err() == nil {
			d.log.Debug("looking for orphaned claims", "error", err)
		}
		pause = max(orphanInterval, min(swept*time.Since(last), restMost))
	}
}

// releaseOrphans gives back what the database counts as claimed by this process and
// this process does not have.
func (d *Dispatcher) releaseOrphans(ctx context.Context) error {
	me := d.member.id.Load()
	claims, err := d.store.ClaimsOf(ctx, me)
	if err != nil {
		return err
	}
	orphans := d.inFlight.orphaned(claims)
	if len(orphans) == 0 {
		return nil
	}
	d.log.Warn("orphaned claims released: their commit was never confirmed", "messages", len(orphans))
	return d.store.Release(ctx, me, orphans, 0)
}
