package dispatcher

import "time"

// floor is an id below which a lane of the outbox has no rows, as far as is known.
// While a snapshot is held (pg_dump), deleted rows stay in the index. A walk that begins at
// the floor does not read them again and again. Rows that are handed over or given back have
// old ids, so from time to time a walk begins below the floor.
type floor struct {
	id   int64
	down time.Time     // of the last look below
	cost time.Duration // of that look
}

const (
	lookDown = 15 * time.Second // between two looks below
	downRest = 200              // as many times as long as such a look took, at least
	// mostRest bounds every pause that is a multiple of what a statement took: one that
	// waited for a frozen server took long, and must not put off the next for hours.
	mostRest = 5 * time.Minute
	// uncommitted is how far an id may be behind others that are committed: its
	// transaction, which drew it, was still under way.
	uncommitted = 1_000
)

// rest returns a pause of times as long as something took, and at most mostRest.
func rest(times int, took time.Duration) time.Duration {
	return min(time.Duration(times)*took, mostRest)
}

// from returns above which id to read.
func (f *floor) from(now time.Time) (id int64, below bool) {
	if now.Sub(f.down) >= max(lookDown, rest(downRest, f.cost)) {
		f.down = now
		return 0, true
	}
	return f.id, false
}

// found notes which row is the first, and what it cost to see that.
func (f *floor) found(first int64, below bool, cost time.Duration) {
	f.id = max(first-uncommitted, 0)
	if below {
		f.cost = cost
	}
}
