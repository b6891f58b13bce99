package smpp

import (
	"sync"
	"time"
)

// seldomEvery is the least time between two lines.
const seldomEvery = time.Minute

// Seldom limits a log line that a carrier could cause a thousand times a second to one a
// minute, with a count. The zero value is ready. It is safe for concurrent use.
type Seldom struct {
	mu    sync.Mutex
	last  time.Time
	count int
}

// Due counts an event and reports whether to log it; count is the number of events since
// the last line, including this one.
func (s *Seldom) Due(now time.Time) (count int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if !s.last.IsZero() && now.Sub(s.last) < seldomEvery {
		return s.count, false
	}
	count = s.count
	s.last, s.count = now, 0
	return count, true
}
