package core

import (
	"sync"
	"time"
)

// Quota bounds the rows that a carrier makes us write per hour for unmatched receipts
// and MOs. It is a leaky bucket: an hour has room for the configured number, a moment
// for a tenth of it, so a burst does not shut out the rest of the hour.
//
// Each process has its own, so a carrier with links in several processes gets several.
type Quota struct {
	mu    sync.Mutex
	level float64 // rows
	at    time.Time
}

// Room returns how many rows may be written now.
func (q *Quota) Room(now time.Time, perHour int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	atOnce := max(float64(perHour)/10, 1)
	leak := (float64(perHour) - atOnce) * now.Sub(q.at).Hours()
	q.level, q.at = max(q.level-max(leak, 0), 0), now
	return int(atOnce - q.level)
}

// Take counts written rows, possibly more than there was room for.
func (q *Quota) Take(rows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.level += float64(rows)
}

// Give subtracts rows that were deleted.
func (q *Quota) Give(rows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.level = max(q.level-float64(rows), 0)
}
