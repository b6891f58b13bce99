package webhooks

import "time"

// class is how an endpoint has been answering. Each class has its own pool of
// call slots, so that the slow ones cannot take what the quick ones live on.
type class uint8

const (
	fresh class = iota // not answered yet
	quick
	slow
	classes
)

const (
	quickAnswer = time.Second // at most, to be quick

	// Of what is due again, what a quick endpoint gets through in this time is
	// fetched ahead of the calls, up to prefetchMax times its limit.
	prefetchTime = 100 * time.Millisecond
	prefetchMax  = 15

	// New deliveries wait in memory, up to so many of an endpoint and of all, and
	// for so long; the rest is parked: written down as due, and fetched again when
	// there is room.
	waitingMost    = 5000
	waitingMostAll = 50_000
	waitingLongest = 2 * time.Second
)

// job is a delivery in this process' hands.
type job struct {
	seq, id int64
	at      time.Time
	number  string
	tries   int       // in this round, before this one
	again   bool      // stands in webhook_undelivered; else it has just arrived
	since   time.Time // in hand
	term    int       // deliverer.term then
}

// event is what the body is made of: all but the company, which is not in it. A
// test's message has the id 0.
func (j *job) event() *Event {
	return &Event{MessageID: max(0, messageOf(j.id)), Name: eventName(j.id), PhoneNumber: j.number, At: j.at}
}

// endpointWorker calls one endpoint. The deliverer's mutex guards it.
type endpointWorker struct {
	company int64
	target  *target   // nil: cannot be called
	loaded  time.Time // when the endpoint was last read
	failing bool      // stands with it
	broken  bool      // has been logged as such
	class   class
	limit   int            // calls at a time
	latency time.Duration  // smoothed
	calls   int            // in flight
	waiting []job          // to be called, in turn
	again   map[int64]bool // ids of those in hand that stand in webhook_undelivered
	due     bool           // there may be due ones that are not in hand
	last    position       // behind it they are looked for; zero: from the beginning
	// While a fetch is under way, what it finds may have been settled since it
	// began: those ids stay in again until it has ended.
	fetching bool
	settled  []int64
	wanting  bool // stands in deliverer.wanting
	inLine   bool // stands in its class' line for a slot
}

// position is a place among a company's undelivered ones.
type position struct {
	due time.Time
	id  int64
}

// room is how many due deliveries may be fetched now. Nothing is fetched for a
// few: half of the room must be free, so that fetches stay large.
func (e *endpointWorker) room() int {
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

// accepts says whether a new delivery may wait in memory. Behind older ones that
// are due and not in hand it may not, nor before an endpoint that is slow.
func (e *endpointWorker) accepts() bool {
	switch {
	case e.target == nil:
		return false
	case e.due || e.class == slow:
		return len(e.waiting) < e.limit
	}
	return len(e.waiting) < waitingMost
}

// next removes the next delivery to call.
func (e *endpointWorker) next() job {
	j := e.waiting[0]
	if e.waiting = e.waiting[1:]; len(e.waiting) == 0 {
		e.waiting = nil
	}
	return j
}

// putBack returns a delivery that was not called.
func (e *endpointWorker) putBack(j job) { e.waiting = append([]job{j}, e.waiting...) }

// letGo empties what waits, but for what arrived after cut, and answers those
// that just arrived: they are to be parked. The others stand in the table.
func (e *endpointWorker) letGo(cut time.Time) (parked []job) {
	kept := e.waiting[:0]
	for _, j := range e.waiting {
		switch {
		case j.since.After(cut):
			kept = append(kept, j)
		case j.again:
			delete(e.again, j.id)
			e.due, e.last = true, position{}
		default:
			parked = append(parked, j)
		}
	}
	e.waiting = kept
	return parked
}

// settle takes a delivery of webhook_undelivered whose attempt is recorded out of
// this process' hands.
func (e *endpointWorker) settle(id int64) {
	if e.fetching {
		e.settled = append(e.settled, id)
		return
	}
	delete(e.again, id)
}

// fetched ends a fetch.
func (e *endpointWorker) fetched() {
	for _, id := range e.settled {
		delete(e.again, id)
	}
	e.fetching, e.settled = false, nil
}

// newEndpointWorker begins with a single call, until that has been answered.
func newEndpointWorker(company int64) *endpointWorker {
	return &endpointWorker{company: company, limit: 1, again: make(map[int64]bool)}
}

// observe learns from an attempt: every quick success allows one call more at a
// time, any failure brings the limit back to first.
func (e *endpointWorker) observe(success bool, took time.Duration, first, most int) {
	known := e.class != fresh
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

// slot is a call's place in the pool of a class.
type slot struct {
	class   class
	started time.Time // of the call that it holds now
	over    bool      // it has been given back
}

// slots are the call slots of one class and the endpoints that wait for one.
type slots struct {
	free int
	line []*endpointWorker
}

// next is the endpoint whose turn it is.
func (s *slots) next() *endpointWorker {
	e := s.line[0]
	s.line = s.line[1:]
	e.inLine = false
	return e
}
