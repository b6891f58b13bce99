package smpp

import (
	"sync"
	"time"
)

// seldomEvery lies between two lines that Seldom lets through.
const seldomEvery = time.Minute

// Seldom thins out a line of the log that a carrier's habit could repeat a
// thousand times a second: one a minute, with how many there were. The zero
// value is ready, and safe for concurrent use.
type Seldom struct {
	mu    sync.Mutex
	last  time.Time
	count int
}

// Due counts one more and tells whether a line is due for it; count is how many
// there were since the last line, this one included.
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
