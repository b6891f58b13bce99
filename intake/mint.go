package intake

import (
	"crypto/rand"
	"sync"

	"github.com/oklog/ulid/v2"

	"intumwa/messages"
)

// mint makes ULIDs, each greater than the one before.
type mint struct {
	*sync.Mutex
	entropy *ulid.MonotonicEntropy
}

func newMint() mint { return mint{new(sync.Mutex), ulid.Monotonic(rand.Reader, 0)} }

func (m *mint) one() ulid.ULID {
	m.Lock()
	defer m.Unlock()
	return m.next()
}

// all gives every message its ULID.
func (m *mint) all(messages []messages.Message) {
	m.Lock()
	defer m.Unlock()
	for i := range messages {
		messages[i].ULID = m.next()
	}
}

func (m *mint) next() ulid.ULID {
	id, err := ulid.New(ulid.Now(), m.entropy)
	if err != nil { // the monotonic part ran over within one millisecond
		m.entropy = ulid.Monotonic(rand.Reader, 0)
		id = ulid.MustNew(ulid.Now(), m.entropy)
	}
	return id
}
