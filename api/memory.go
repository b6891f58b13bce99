package api

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// memory bounds the octets of bodies and large answers that are in the process
// at once, of everybody together. What a client promises takes none: a body
// holds what has come of it.
//
// When there is no room, somebody gives way whose body or answer is still on its
// way: the slowest of those that are slower than leastPace; else, of whoever
// holds most, the latest. So one that sends or reads slowly keeps nobody out, and
// one that sends much keeps out itself.
type memory struct {
	most int64

	mu      sync.Mutex
	held    int64
	leaving int64 // of it, what was told to give way and has not gone yet
	begun   uint64
	holds   map[*hold]struct{}
	freed   chan struct{} // closed when some of it came free

	octets  prometheus.Gauge
	dropped *prometheus.CounterVec // kind: body, answer
}

// hold is one body's or one answer's share.
type hold struct {
	memory *memory
	user   int64
	what   string
	begun  uint64 // its turn
	since  time.Time
	octets int64
	moved  atomic.Int64 // of it, what has come or gone so far
	yield  func()       // ends what it is held for, without waiting; nil: it cannot be asked to give way
	told   bool         // to give way
}

func newMemory(most int64, m *metrics) *memory {
	return &memory{most: most, holds: make(map[*hold]struct{}), freed: make(chan struct{}), octets: m.memory, dropped: m.dropped}
}

// open begins a share of nothing. yield is called, from any goroutine, when it
// has to give way: it makes its owner come to close soon. close is to be called
// in any case.
func (m *memory) open(user int64, what string, yield func()) *hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun++
	h := &hold{memory: m, user: user, what: what, begun: m.begun, since: time.Now(), yield: yield}
	m.holds[h] = struct{}{}
	return h
}

// resize makes the share that large. It waits for room until ctx ends, but not
// longer than placeWait; errNoPlace when there is none, or the share itself had
// to give way.
func (h *hold) resize(ctx context.Context, octets int64) error {
	m := h.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	var late <-chan time.Time
	for {
		more := octets - h.octets
		switch {
		case h.told:
			return errNoPlace
		case m.held+more <= m.most:
			m.held += more
			h.octets = octets
			m.octets.Set(float64(m.held))
			if more < 0 {
				m.free()
			}
			return nil
		}
		if m.held-m.leaving+more > m.most {
			if other := m.yielding(h, more); other != nil && other != h {
				other.told = true
				m.leaving += other.octets
				m.dropped.WithLabelValues(other.what).Inc()
				other.yield()
				continue
			}
		}
		if late == nil {
			timer := time.NewTimer(placeWait)
			defer timer.Stop()
			late = timer.C
		}
		freed := m.freed
		m.mu.Unlock()
		var over bool
		select {
		case <-freed:
		case <-time.After(leastAge / 8): // somebody is slow by now
		case <-late:
			over = true
		case <-ctx.Done():
			over = true
		}
		m.mu.Lock()
		if over {
			if !h.told {
				m.dropped.WithLabelValues(h.what).Inc()
			}
			return errNoPlace
		}
	}
}

// A body or an answer that has been on its way for leastAge is slow below
// leastPace octets a second, and gives way first. Without want of memory nobody
// asks.
const (
	leastAge  = 2 * time.Second
	leastPace = 64 << 10
)

// pace is the octets a second so far; slow tells whether they are too few.
func (h *hold) pace(now time.Time) (pace float64, slow bool) {
	age := now.Sub(h.since)
	pace = float64(h.moved.Load()) / max(age, time.Millisecond).Seconds()
	return pace, age >= leastAge && pace < leastPace
}

// yielding is the share that is to give way to h, which wants more. It is h
// itself when nobody holds more than its owner would; nil when nothing can give
// way.
func (m *memory) yielding(h *hold, more int64) *hold {
	var slowest, latest *hold
	var least float64
	now := time.Now()
	users := map[int64]int64{h.user: more}
	for each := range m.holds {
		if each.told {
			continue
		}
		users[each.user] += each.octets
		if each == h || each.yield == nil || each.octets == 0 {
			continue
		}
		if pace, slow := each.pace(now); slow && (slowest == nil || pace < least) {
			slowest, least = each, pace
		}
	}
	if slowest != nil {
		return slowest
	}
	for each := range m.holds {
		if each.yield == nil || each.told || each.octets == 0 && each != h {
			continue
		}
		if latest == nil || users[each.user] > users[latest.user] ||
			users[each.user] == users[latest.user] && each.begun > latest.begun {
			latest = each
		}
	}
	return latest
}

// keep makes sure that the share is not asked to give way from here on; false
// when it was.
func (h *hold) keep() bool {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	if h.told {
		return false
	}
	h.yield = nil
	return true
}

// gaveWay tells whether the share was told to.
func (h *hold) gaveWay() bool {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	return h.told
}

// close gives the share back; further calls do nothing.
func (h *hold) close() {
	m := h.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, open := m.holds[h]; !open {
		return
	}
	delete(m.holds, h)
	h.yield = nil
	m.held -= h.octets
	if h.told {
		m.leaving -= h.octets
	}
	m.octets.Set(float64(m.held))
	m.free()
}

// free wakes who waits.
func (m *memory) free() {
	close(m.freed)
	m.freed = make(chan struct{})
}

// counted notes what of a body has come.
type counted struct {
	io.Reader
	held *hold
}

func (r counted) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.held.moved.Add(int64(n))
	return n, err
}
