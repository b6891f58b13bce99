package intake

import (
	"fmt"
	"slices"
	"time"
)

// How long a request may take, from when it came into intake. A client may be gone after 30 seconds.
const (
	// beginWithin is how long it may wait until an attempt to commit it begins.
	beginWithin = 20 * time.Second
	// answerWithin is when the attempt, and the search for its outcome, should have ended; recheckGrace may come on top.
	answerWithin = 25 * time.Second
	// goneAfter is how long it waits after its client has disconnected. Only a database that does not commit makes it wait
	// so long. Then the client, which got no answer, may repeat it, perhaps without a key. Before that a disconnected
	// client may be one that has only closed its side for writing, or needs no answer.
	goneAfter = 2 * time.Second
)

var (
	errWaitedTooLong = fmt.Errorf("%w: the request waited too long for a commit", ErrUnavailable)
	errQueueFull     = fmt.Errorf("%w: too many requests wait for a commit", ErrUnavailable)
)

// States of a request. It waits until an attempt to commit it begins, and after one that committed nothing. Only while
// it waits may its caller return without an outcome.
const (
	waiting int32 = iota
	begun
	answered
)

// late reports whether no attempt may begin for the request.
func (r *request) late() bool {
	age := time.Since(r.came)
	if age < goneAfter {
		return false
	}
	select {
	case <-r.gone:
		return true
	default:
		return age >= beginWithin
	}
}

// inTime returns the requests that still wait, and refuses those that are late.
func inTime(requests []*request) []*request {
	on := make([]*request, 0, len(requests))
	for _, r := range requests {
		if r.late() {
			r.answer(errWaitedTooLong)
		} else if r.state.Load() == waiting {
			on = append(on, r)
		}
	}
	return on
}

// begin returns the requests that an attempt to commit begins for: those that are in time.
func begin(requests []*request) []*request {
	return slices.DeleteFunc(inTime(requests), func(r *request) bool { return !r.state.CompareAndSwap(waiting, begun) })
}

// again makes requests wait after an attempt that committed nothing. Callers do not watch the time during an attempt,
// so it refuses those that are late.
func again(requests []*request) {
	for _, r := range requests {
		r.state.Store(waiting)
		if r.late() {
			r.answer(errWaitedTooLong)
		}
	}
}

// timeLeft is how long an attempt for requests may take.
func timeLeft(requests []*request) time.Duration {
	left := answerWithin
	for _, r := range requests {
		left = min(left, answerWithin-time.Since(r.came))
	}
	return left
}

// respond wakes the callers of requests that have no answer.
func respond(requests []*request, err error) {
	for _, r := range requests {
		r.answer(err)
	}
}

func (r *request) answer(err error) {
	if r.state.Swap(answered) == answered {
		return
	}
	if err != nil {
		r.outcome = outcome{err: err}
	}
	close(r.done)
}
