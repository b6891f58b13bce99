package api

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// memory limits the bytes of request bodies and large responses that the process
// holds at the same time: of all users together, and of one user to half of that, so
// that a user who sends much, or reads slowly, uses up only its own half.
//
// Nobody waits for memory: a transfer for which there is none is refused. The server's
// read and write timeouts end slow transfers.
type memory struct {
	most int64

	mu    sync.Mutex
	held  int64
	users map[int64]int64

	octets  prometheus.Gauge
	dropped *prometheus.CounterVec // kind: body, answer
}

func newMemory(most int64, m *metrics) *memory {
	return &memory{most: most, users: make(map[int64]int64), octets: m.memory, dropped: m.dropped}
}

// take reserves bytes for a user. It returns false, and counts a dropped transfer of
// this kind, when there is no room for them.
func (m *memory) take(user, octets int64, kind string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held+octets > m.most || m.users[user]+octets > m.most/2 {
		m.dropped.WithLabelValues(kind).Inc()
		return false
	}
	m.add(user, octets)
	return true
}

// release gives bytes of a user back.
func (m *memory) release(user, octets int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(user, -octets)
}

func (m *memory) add(user, octets int64) {
	m.held += octets
	m.octets.Set(float64(m.held))
	if m.users[user] += octets; m.users[user] == 0 {
		delete(m.users, user)
	}
}
