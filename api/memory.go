package api

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// memory limits the octets of request bodies and large responses that the process
// holds at the same time, for all users together. A body counts with what was
// received of it, not with its Content-Length.
//
// When the limit is reached, a transfer in progress is aborted: the slowest one
// below minRate; without such a one, the latest of the user who holds most. So a
// slow client does not block the others, and a user who sends much blocks only
// itself.
type memory struct {
	most int64

	mu           sync.Mutex
	held         int64
	beingFreed   int64 // of held: aborted, but not released yet
	started      uint64
	reservations map[*reservation]struct{}
	freed        chan struct{} // closed when memory was released

	octets  prometheus.Gauge
	dropped *prometheus.CounterVec // kind: body, answer
}

// reservation is the memory of one body or one response.
type reservation struct {
	memory      *memory
	user        int64
	what        string
	order       uint64 // of its start
	since       time.Time
	octets      int64
	transferred atomic.Int64 // octets received or sent so far
	abort       func()       // ends the transfer without waiting; nil: it must not be aborted
	aborted     bool
}

func newMemory(most int64, m *metrics) *memory {
	return &memory{most: most, reservations: make(map[*reservation]struct{}), freed: make(chan struct{}), octets: m.memory, dropped: m.dropped}
}

// reserve makes a reservation of zero octets. abort is called, from any goroutine,
// when others need the memory: it must make the owner call close soon. The owner
// calls close in any case.
func (m *memory) reserve(user int64, what string, yield func()) *reservation {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started++
	h := &reservation{memory: m, user: user, what: what, order: m.started, since: time.Now(), abort: yield}
	m.reservations[h] = struct{}{}
	return h
}

// resize sets the reservation to a number of octets. It waits for memory until ctx
// ends, but at most slotWait; errNoSlot when none became free or the reservation
// itself was aborted.
func (h *reservation) resize(ctx context.Context, octets int64) error {
	m := h.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	var late <-chan time.Time
	for {
		more := octets - h.octets
		switch {
		case h.aborted:
			return errNoSlot
		case m.held+more <= m.most:
			m.held += more
			h.octets = octets
			m.octets.Set(float64(m.held))
			if more < 0 {
				m.wakeWaiters()
			}
			return nil
		}
		if m.held-m.beingFreed+more > m.most {
			if other := m.pickToAbort(h, more); other != nil && other != h {
				other.aborted = true
				m.beingFreed += other.octets
				m.dropped.WithLabelValues(other.what).Inc()
				other.abort()
				continue
			}
		}
		if late == nil {
			timer := time.NewTimer(slotWait)
			defer timer.Stop()
			late = timer.C
		}
		freed := m.freed
		m.mu.Unlock()
		var over bool
		select {
		case <-freed:
		case <-time.After(minRateAfter / 8): // by now a transfer may count as slow
		case <-late:
			over = true
		case <-ctx.Done():
			over = true
		}
		m.mu.Lock()
		if over {
			if !h.aborted {
				m.dropped.WithLabelValues(h.what).Inc()
			}
			return errNoSlot
		}
	}
}

// A transfer older than minRateAfter that is slower than minRate octets a second is
// aborted first when memory is short. Otherwise slow transfers are left alone.
const (
	minRateAfter = 2 * time.Second
	minRate      = 64 << 10
)

// rate returns the octets a second so far; slow is true below minRate.
func (h *reservation) rate(now time.Time) (pace float64, slow bool) {
	age := now.Sub(h.since)
	pace = float64(h.transferred.Load()) / max(age, time.Millisecond).Seconds()
	return pace, age >= minRateAfter && pace < minRate
}

// pickToAbort returns the reservation to abort so that h can grow by more octets.
// It returns h itself when no user holds more than h's owner would, and nil when
// nothing can be aborted.
func (m *memory) pickToAbort(h *reservation, more int64) *reservation {
	var slowest, latest *reservation
	var least float64
	now := time.Now()
	users := map[int64]int64{h.user: more}
	for each := range m.reservations {
		if each.aborted {
			continue
		}
		users[each.user] += each.octets
		if each == h || each.abort == nil || each.octets == 0 {
			continue
		}
		if pace, slow := each.rate(now); slow && (slowest == nil || pace < least) {
			slowest, least = each, pace
		}
	}
	if slowest != nil {
		return slowest
	}
	for each := range m.reservations {
		if each.abort == nil || each.aborted || each.octets == 0 && each != h {
			continue
		}
		if latest == nil || users[each.user] > users[latest.user] ||
			users[each.user] == users[latest.user] && each.order > latest.order {
			latest = each
		}
	}
	return latest
}

// makePermanent protects the reservation from being aborted; it returns false when
// it already was.
func (h *reservation) makePermanent() bool {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	if h.aborted {
		return false
	}
	h.abort = nil
	return true
}

// wasAborted reports whether the reservation was aborted.
func (h *reservation) wasAborted() bool {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	return h.aborted
}

// close releases the memory; further calls do nothing.
func (h *reservation) close() {
	m := h.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, open := m.reservations[h]; !open {
		return
	}
	delete(m.reservations, h)
	h.abort = nil
	m.held -= h.octets
	if h.aborted {
		m.beingFreed -= h.octets
	}
	m.octets.Set(float64(m.held))
	m.wakeWaiters()
}

// wakeWaiters wakes all calls of resize that wait.
func (m *memory) wakeWaiters() {
	close(m.freed)
	m.freed = make(chan struct{})
}

// countingReader counts the octets received of a body.
type countingReader struct {
	io.Reader
	held *reservation
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.held.transferred.Add(int64(n))
	return n, err
}
