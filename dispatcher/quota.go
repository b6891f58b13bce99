package dispatcher

import (
	"sync"
	"time"
)

// quota bounds the rows that a carrier makes us write per hour for unmatched receipts
// and MOs. It is a leaky bucket: an hour has room for the configured number, a moment
// for a tenth of it, so a burst does not shut out the rest of the hour.
//
// Each process has its own, so a carrier with links in several processes gets several.
type quota struct {
	mu    sync.Mutex
	level float64 // rows
	at    time.Time
}

// room returns how many rows may be written now.
func (q *quota) room(now time.Time, perHour int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	atOnce := max(float64(perHour)/10, 1)
	leak := (float64(perHour) - atOnce) * now.Sub(q.at).Hours()
	q.level, q.at = max(q.level-max(leak, 0), 0), now
	return int(atOnce - q.level)
}

// take counts written rows, possibly more than there was room for.
func (q *quota) take(rows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.level += float64(rows)
}

// give subtracts rows that were deleted.
func (q *quota) give(rows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.level = max(q.level-float64(rows), 0)
}
