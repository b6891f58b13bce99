package dispatcher

import (
	"sync"
	"time"
)

// quota bounds how many rows a carrier can make us write in an hour: of what we
// did not ask for, receipts that match nothing and messages from handsets.
// It fills as rows are written and runs empty with time: in any hour there is
// room for what the configuration says, at once for a tenth of it, so that what
// came in a rush does not shut out what follows for the rest of the hour.
//
// It is of one process: a carrier whose links are held by several has as many.
type quota struct {
	mu    sync.Mutex
	level float64 // rows
	at    time.Time
}

// room is how many rows may be written now.
func (q *quota) room(now time.Time, perHour int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	atOnce := max(float64(perHour)/10, 1)
	leak := (float64(perHour) - atOnce) * now.Sub(q.at).Hours()
	q.level, q.at = max(q.level-max(leak, 0), 0), now
	return int(atOnce - q.level)
}

// take notes that rows were written. They may be more than there was room for.
func (q *quota) take(rows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.level += float64(rows)
}

// give notes that rows are gone again.
func (q *quota) give(rows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.level = max(q.level-float64(rows), 0)
}
