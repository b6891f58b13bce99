package dispatcher

import (
	"context"
	"sync"
	"time"

	"intumwa/messages"
)

// inFlightMessages are the messages that this process has claimed and neither settled
// nor given back.
//
// The database may hold more claims of this process: a claim can commit while its
// answer is lost. Such a message would wait until this process ends, so
// releaseOrphans gives it back.
type inFlightMessages struct {
	mu     sync.Mutex
	byID   map[int64]*inFlight // by message
	claims *sync.WaitGroup     // running

	failed chan struct{} // a claim failed
}

func newInFlightMessages() *inFlightMessages {
	return &inFlightMessages{byID: make(map[int64]*inFlight), claims: new(sync.WaitGroup), failed: make(chan struct{}, 1)}
}

func (f *inFlightMessages) add(m *inFlight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byID[m.msg.ID] = m
}

// remove removes m. If another worker of this process has claimed the message again,
// that claim stays.
func (f *inFlightMessages) remove(m *inFlight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID[m.msg.ID] == m {
		delete(f.byID, m.msg.ID)
	}
}

// get returns a message in flight, or nil.
func (f *inFlightMessages) get(id int64) *inFlight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[id]
}

// claiming registers a running claim. The caller calls done after adding the messages.
func (f *inFlightMessages) claiming() (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims.Add(1)
	return f.claims.Done
}

// orphaned returns the claims, read from the database, that no worker has or will get.
// It waits for the running claims: each of them adds its rows or fails.
func (f *inFlightMessages) orphaned(claims []messages.Claim) (orphans []messages.Claim) {
	if len(claims) == 0 {
		return nil
	}
	f.mu.Lock()
	before := f.claims
	f.claims = new(sync.WaitGroup)
	f.mu.Unlock()
	before.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, claim := range claims {
		if m := f.byID[claim.MessageID]; m == nil || m.msg.Epoch != claim.Epoch {
			orphans = append(orphans, claim)
		}
	}
	return orphans
}

// orphanLooks are the pauses before the searches for orphaned claims after a claim has
// failed. The server may commit that claim after its timeout here, but not a minute
// later. A search reads the whole backlog, so there are few.
var orphanLooks = [...]time.Duration{5 * time.Second, 10 * time.Second, 45 * time.Second}

// lookTimeout bounds one step of a search.
const lookTimeout = 15 * time.Second

// runOrphans searches for orphaned claims after a claim has failed.
func (d *Dispatcher) runOrphans(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.inFlight.failed:
		}
		for _, pause := range orphanLooks {
			if sleep(ctx, pause) != nil {
				return
			}
			if err := d.releaseOrphans(ctx); err != nil {
				d.log.Debug("looking for orphaned claims; it is tried again", "error", err)
				signal(d.inFlight.failed)
			}
		}
	}
}

// releaseOrphans gives back the claims of this process that exist only in the database. A
// message that was claimed, settled or given back meanwhile has another epoch or is gone,
// so the release does not touch it.
func (d *Dispatcher) releaseOrphans(ctx context.Context) error {
	me := d.member.id.Load()
	for after, more := int64(0), true; more; more = after > 0 {
		claims, next, err := d.claimsAfter(ctx, after)
		if err != nil {
			return err
		}
		var mine []messages.Claim
		for _, c := range claims {
			if c.Dispatcher == me {
				mine = append(mine, c.Claim)
			}
		}
		if orphans := d.inFlight.orphaned(mine); len(orphans) > 0 {
			d.log.Warn("orphaned claims released: their commit was never confirmed", "event", "orphaned_claims_released", "messages", len(orphans))
			if err := d.store.Release(ctx, me, orphans, 0); err != nil {
				return err
			}
		}
		after = next
	}
	return nil
}

// claimsAfter is messages.Store.Claims within lookTimeout.
func (d *Dispatcher) claimsAfter(ctx context.Context, after int64) (claims []messages.ClaimedRow, next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return d.store.Claims(ctx, after)
}
