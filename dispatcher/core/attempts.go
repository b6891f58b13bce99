package core

import (
	"sync"

	"intumwa/messages"
)

// InFlightMessages are the messages that this process has claimed and neither settled
// nor given back.
//
// The database may hold more claims of this process: a claim can commit while its
// answer is lost. Such a message would wait until this process ends, so
// recovery gives it back.
type InFlightMessages struct {
	mu     sync.Mutex
	byID   map[int64]*InFlight // by message
	claims *sync.WaitGroup     // running

	Failed chan struct{} // a claim failed
}

// NewInFlightMessages returns the messages of a process that has claimed none.
func NewInFlightMessages() *InFlightMessages {
	return &InFlightMessages{byID: make(map[int64]*InFlight), claims: new(sync.WaitGroup), Failed: make(chan struct{}, 1)}
}

// Add adds a message that was claimed.
func (f *InFlightMessages) Add(m *InFlight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byID[m.Msg.ID] = m
}

// Remove removes m. If another worker of this process has claimed the message again,
// that claim stays.
func (f *InFlightMessages) Remove(m *InFlight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID[m.Msg.ID] == m {
		delete(f.byID, m.Msg.ID)
	}
}

// Get returns a message in flight, or nil.
func (f *InFlightMessages) Get(id int64) *InFlight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[id]
}

// Claiming registers a running claim. The caller calls done after adding the messages.
func (f *InFlightMessages) Claiming() (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims.Add(1)
	return f.claims.Done
}

// Orphaned returns the claims, read from the database, that no worker has or will get.
// It waits for the running claims: each of them adds its rows or fails.
func (f *InFlightMessages) Orphaned(claims []messages.Claim) (orphans []messages.Claim) {
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
		if m := f.byID[claim.MessageID]; m == nil || m.Msg.Epoch != claim.Epoch {
			orphans = append(orphans, claim)
		}
	}
	return orphans
}
