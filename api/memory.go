package api

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// memory limits the bytes of request bodies and large responses in the process: of all users together, and of one user
// to half of that.
//
// It never blocks: a transfer that does not fit is refused. The server's read and write timeouts end slow transfers.
type memory struct {
	most int64

	mu    sync.Mutex
	used  int64
	users map[int64]int64

	bytes   prometheus.Gauge
	dropped *prometheus.CounterVec // kind: body, answer
}

func newMemory(most int64, m *metrics) *memory {
	return &memory{most: most, users: make(map[int64]int64), bytes: m.memory, dropped: m.dropped}
}

// take reserves bytes for a user. When they do not fit, it counts a dropped transfer of this kind and returns false.
func (m *memory) take(user, n int64, kind string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used+n > m.most || m.users[user]+n > m.most/2 {
		m.dropped.WithLabelValues(kind).Inc()
		return false
	}
	m.add(user, n)
	return true
}

// release returns a user's bytes.
func (m *memory) release(user, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(user, -n)
}

func (m *memory) add(user, n int64) {
	m.used += n
	m.bytes.Set(float64(m.used))
	if m.users[user] += n; m.users[user] == 0 {
		delete(m.users, user)
	}
}
