package recovery

import (
	"time"

	"intumwa/dispatcher/core"
)

// floor is an id below which a lane of the outbox probably has no rows. While a snapshot is
// held (pg_dump), deleted rows stay in the index. A walk from the floor does not read them
// again and again. Rows that are handed over or given back have old ids, so from time to
// time a walk starts below the floor.
type floor struct {
	id   int64
	Down time.Time     // of the last read below
	cost time.Duration // of that read
}

const (
	lookDown = 15 * time.Second // between reads below
	downRest = 200              // at least so many times the duration of such a read
	// Uncommitted is how far an id may lag behind committed ones, because its
	// transaction was still running.
	Uncommitted = 1_000
)

// from returns the id above which to read.
func (f *floor) from(now time.Time) (id int64, below bool) {
	if now.Sub(f.Down) >= max(lookDown, core.Rest(downRest, f.cost)) {
		f.Down = now
		return 0, true
	}
	return f.id, false
}

// found records the first row and the cost of finding it.
func (f *floor) found(first int64, below bool, cost time.Duration) {
	f.id = max(first-Uncommitted, 0)
	if below {
		f.cost = cost
	}
}
