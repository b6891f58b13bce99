package webhooks

import "time"

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

	// For a quick endpoint as many due deliveries are fetched ahead as it handles in
	// prefetchTime, up to prefetchMax times its limit.
	prefetchTime = 100 * time.Millisecond
	prefetchMax  = 15

	// Limits of the new deliveries that wait in memory: of one endpoint, of all, and in
	// time. The rest is parked: written to webhook_undelivered as due, and fetched again
	// when there is room.
	maxWaiting     = 5000
	maxWaitingAll  = 50_000
	maxWaitingTime = 2 * time.Second
)

// job is a delivery in memory: waiting for its call, or in flight.
type job struct {
	seq, id     int64
	at          time.Time
	number      string
	data        string // of the body, of events that are about no message of the company
	reference   string
	tries       int       // attempts of this round before this one
	undelivered bool      // has a row in webhook_undelivered; otherwise it is new
	since       time.Time // when it came into memory
	term        int       // deliverer.term at that time
}

// event returns the event of the body, without the company, which is not part of the
// body. The message of a test has the id 0.
func (j *job) event() *Event {
	return &Event{MessageID: max(0, messageOf(j.id)), Name: eventName(j.id), PhoneNumber: j.number, At: j.at, Reference: j.reference, data: j.data}
}

// endpointWorker calls one endpoint. The deliverer's mutex guards it.
type endpointWorker struct {
	company     int64
	target      *target   // nil: cannot be called
	loaded      time.Time // when the endpoint was last read
	failing     bool      // as stored with the endpoint
	broken      bool      // that it cannot be called has been logged
	class       class
	limit       int            // calls at a time
	latency     time.Duration  // smoothed
	calls       int            // in flight
	waiting     []job          // to be called, in this order
	undelivered map[int64]bool // ids of jobs with a row in webhook_undelivered
	due         bool           // there may be due deliveries that are not in memory
	last        position       // where the next fetch begins; zero: at the first one due
	// A fetch under way may return deliveries that were settled after it began: their
	// ids stay in undelivered until it has ended.
	fetching     bool
	settled      []int64
	inFetchQueue bool // is in deliverer.fetchQueue
	inLine       bool // waits in the line of its class
}

// position is a position among a company's undelivered deliveries.
type position struct {
	due time.Time
	id  int64
}

// fetchLimit returns how many due deliveries may be fetched now. It is 0 unless half
// of the room is free, so that fetches stay large.
func (e *endpointWorker) fetchLimit() int {
	size := e.limit
	if e.class == quick {
		ahead := prefetchMax
		if e.latency > 0 {
			ahead = min(ahead, int(prefetchTime/e.latency))
		}
		size += e.limit * ahead
	}
	free := size - e.calls - len(e.waiting)
	if free <= 0 || 2*free < size {
		return 0
	}
	return free
}

// accepts reports whether a new delivery may wait in memory. At a slow endpoint, or
// behind older deliveries that are due and not in memory, only limit may.
func (e *endpointWorker) accepts() bool {
	switch {
	case e.target == nil:
		return false
	case e.due || e.class == slow:
		return len(e.waiting) < e.limit
	}
	return len(e.waiting) < maxWaiting
}

// next removes and returns the next delivery to call.
func (e *endpointWorker) next() job {
	j := e.waiting[0]
	if e.waiting = e.waiting[1:]; len(e.waiting) == 0 {
		e.waiting = nil
	}
	return j
}

// putBack returns a delivery that was not called.
func (e *endpointWorker) putBack(j job) { e.waiting = append([]job{j}, e.waiting...) }

// dropWaiting removes the waiting jobs that came before cut and returns the new ones
// among them, which must be parked. The others have a row in webhook_undelivered.
func (e *endpointWorker) dropWaiting(cut time.Time) (parked []job) {
	kept := e.waiting[:0]
	for _, j := range e.waiting {
		switch {
		case j.since.After(cut):
			kept = append(kept, j)
		case j.undelivered:
			delete(e.undelivered, j.id)
			e.due, e.last = true, position{}
		default:
			parked = append(parked, j)
		}
	}
	e.waiting = kept
	return parked
}

// settle removes an id from undelivered when its attempt is stored.
func (e *endpointWorker) settle(id int64) {
	if e.fetching {
		e.settled = append(e.settled, id)
		return
	}
	delete(e.undelivered, id)
}

// fetched ends a fetch.
func (e *endpointWorker) fetched() {
	for _, id := range e.settled {
		delete(e.undelivered, id)
	}
	e.fetching, e.settled = false, nil
}

// newEndpointWorker makes a worker with a limit of one call, until that has ended.
func newEndpointWorker(company int64) *endpointWorker {
	return &endpointWorker{company: company, limit: 1, undelivered: make(map[int64]bool)}
}

// learn adjusts class and limit after an attempt: each quick success raises the limit
// by one, up to most; a failure or a slow response resets it to first.
func (e *endpointWorker) learn(success bool, took time.Duration, first, most int) {
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

// slot is a call slot of a class.
type slot struct {
	class   class
	started time.Time // of its current call
	over    bool      // it was released
}

// slots is the free call slots of one class and the endpoints that wait for one.
type slots struct {
	free int
	line []*endpointWorker
}

// next removes and returns the first endpoint in line.
func (s *slots) next() *endpointWorker {
	e := s.line[0]
	s.line = s.line[1:]
	e.inLine = false
	return e
}
