package webhooks

import (
	"time"
)

const (
	quickAnswer = time.Second      // an endpoint that takes longer is slow
	brokenPause = 30 * time.Second // pause for an endpoint whose secret cannot be read

	// ahead is how many deliveries of a quick endpoint are claimed per call: each claim costs a commit.
	ahead = 8
)

// worker calls one endpoint. The deliverer's mutex guards it.
type worker struct {
	company     int64
	target      *target // of the last claim; nil: none, or unusable
	failing     bool    // its last call failed
	pausedUntil time.Time
	known       bool // a call has ended
	slow        bool // the last call took longer than quickAnswer
	limit       int  // concurrent callers
	callers     int  // goroutines that call
	waiting     []*job
	queued      bool // in deliverer.queue
	from        position
}

// position is a position among a company's undelivered deliveries.
type position struct {
	due time.Time
	id  int64
}

// claimed holds a company's claimed deliveries, and its endpoint at that moment.
type claimed struct {
	endpoint storedEndpoint
	jobs     []*job
	last     position
}

// newWorker makes a worker that is limited to one caller until its first call has ended.
func newWorker(company int64) *worker { return &worker{company: company, limit: 1} }

// most returns how many deliveries so many callers may have, in flight and waiting together.
func (e *worker) most(callers int) int {
	if e.quick() {
		return callers * ahead
	}
	return callers
}

// room returns how many more deliveries the worker may get.
func (e *worker) room() int { return e.most(e.limit) - e.callers - len(e.waiting) }

// quick reports whether the last calls were quick successes.
func (e *worker) quick() bool { return e.known && !e.slow && !e.failing && e.limit > fewCalls }

// learn adjusts the limit after an attempt: a quick success raises it by one, up to most; a failure or a slow response
// resets it to few.
func (e *worker) learn(success bool, took time.Duration, few, most int) {
	e.slow = took > quickAnswer
	if e.slow || !success || !e.known {
		e.limit = few
	} else if e.limit < most {
		e.limit++
	}
	e.known = true
}
