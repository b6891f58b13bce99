package dispatcher

import (
	"sync"

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

// newInFlightMessages returns the messages of a process that has claimed none.
func newInFlightMessages() *inFlightMessages {
	return &inFlightMessages{byID: make(map[int64]*inFlight), claims: new(sync.WaitGroup), failed: make(chan struct{}, 1)}
}

// add adds a message that was claimed.
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
