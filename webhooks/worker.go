package webhooks

import (
	"time"
)

// class is how quickly an endpoint responds. Each class has its own pool of call
// slots, so that slow endpoints cannot take the slots of quick ones.
type class uint8

const (
	untried class = iota // no call has ended yet
	quick
	slow
	classes
)

const (
	quickAnswer = time.Second // an endpoint that takes longer is slow

	// A run of calls to a quick endpoint claims as many deliveries as it makes in
	// aheadTime, aheadMost at most.
	aheadTime = 100 * time.Millisecond
	aheadMost = 15

	// brokenPause is how long an endpoint whose secret cannot be read is left alone.
	brokenPause = time.Minute
)

// worker calls one endpoint. The deliverer's mutex guards it.
type worker struct {
	company int64
	target  *target // of the last claim; nil: none, or it cannot be called
	failing bool    // as stored with the endpoint at the last claim
	changed int     // counts notices of changes: what was claimed before one is not called after it
	resting time.Time
	class   class
	limit   int           // calls at a time
	latency time.Duration // smoothed
	runs    int           // in flight or about to be, each of one call at a time
	queued  bool          // is in deliverer.queue
	from    position      // where the next claim begins
}

// newWorker makes a worker with a limit of one call, until that has ended.
func newWorker(company int64) *worker { return &worker{company: company, limit: 1} }

// change makes what was claimed before be claimed again, with the endpoint as it is now.
func (e *worker) change() {
	e.changed++
	e.resting = time.Time{}
}

// room returns how many runs may begin. It is 0 unless half of them are free, so that
// claims stay large.
func (e *worker) room() int {
	free := e.limit - e.runs
	if 2*free < e.limit {
		return 0
	}
	return max(0, free)
}

// ahead returns how many deliveries are claimed for each run.
func (e *worker) ahead() int {
	if e.class != quick || e.latency == 0 {
		return 1
	}
	return max(1, min(aheadMost, int(aheadTime/e.latency)))
}

// learn adjusts class and limit after an attempt: each quick success raises the limit
// by one, up to most; a failure or a slow response resets it to first.
func (e *worker) learn(success bool, took time.Duration, first, most int) {
	known := e.class != untried
	if took <= quickAnswer {
		e.class = quick
	} else {
		e.class = slow
	}
	if e.latency == 0 {
		e.latency = took
	} else {
		e.latency += (took - e.latency) / 8
	}
	switch {
	case known && e.class == quick && success && e.limit < most:
		e.limit++
	case !known || !success || e.class == slow:
		e.limit = first
	}
}

// slot is a call slot of a class, which a run holds.
type slot struct {
	class   class
	changed int       // worker.changed at the claim
	started time.Time // of the current call
	over    bool      // it was released
}
