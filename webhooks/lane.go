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

	// What a quick endpoint gets through in this time is taken ahead of the
	// calls, up to prefetchMax times its limit.
	prefetchTime = 100 * time.Millisecond
	prefetchMax  = 15

	// A delivery whose lease ends within the timeout and this is not called any more.
	leaseMargin = time.Second
)

// claimed is a delivery in this worker's hands.
type claimed struct {
	id    int64
	tries int
	body  string
	lease time.Time // on this machine's clock, reckoned from before the claim was made
}

// lane is one endpoint's deliveries in this worker. The worker's mutex guards it.
type lane struct {
	company int64
	target  *target // nil: cannot be used
	broken  bool    // has been logged as such
	class   class
	limit   int           // calls at a time
	latency time.Duration // smoothed
	calls   int           // under way
	waiting []claimed     // taken and not called yet
	more    bool          // Postgres may have due deliveries that nobody holds
	hungry  bool          // stands in worker.hungry
	inLine  bool          // stands in its class's line for a slot
}

// room is how many deliveries may be taken for the lane now. Nothing is taken
// for a few: half of the room must be free, so that claims stay large.
func (l *lane) room() int {
	size := l.limit
	if l.class == quick {
		ahead := prefetchMax
		if l.latency > 0 {
			ahead = min(ahead, int(prefetchTime/l.latency))
		}
		size += l.limit * ahead
	}
	free := size - l.calls - len(l.waiting)
	if free <= 0 || 2*free < size {
		return 0
	}
	return free
}

// take removes the next delivery to call.
func (l *lane) take() claimed {
	c := l.waiting[0]
	l.waiting[0] = claimed{} // frees its body
	if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	return c
}

// handBack empties the lane and answers the ids of what waited and whose leases
// are still its own.
func (l *lane) handBack() (ids []int64) {
	now := time.Now()
	for _, c := range l.waiting {
		if now.Before(c.lease) {
			ids = append(ids, c.id)
		}
	}
	l.waiting = nil
	return ids
}

// newLane begins with a single call, until that has been answered.
func newLane(company int64) *lane { return &lane{company: company, limit: 1} }

// observe learns from an attempt: every quick success allows one call more at a
// time, any failure brings the limit back to first.
func (l *lane) observe(success bool, took time.Duration, first, most int) {
	known := l.class != fresh
	if took <= quickAnswer {
		l.class = quick
	} else {
		l.class = slow
	}
	if l.latency == 0 {
		l.latency = took
	} else {
		l.latency += (took - l.latency) / 8
	}
	switch {
	case known && l.class == quick && success && l.limit < most:
		l.limit++
	case !known || !success || l.class == slow:
		l.limit = first
	}
}

// slot is a call's place in the pool of a class.
type slot struct {
	class   class
	started time.Time // of the call that it holds now
	over    bool      // it has been given back
}

// pool is the call slots of one class and the lanes that wait for one.
type pool struct {
	free int
	line []*lane
}

// next is the lane whose turn it is, or nil.
func (p *pool) next() *lane {
	if len(p.line) == 0 {
		return nil
	}
	l := p.line[0]
	p.line = p.line[1:]
	l.inLine = false
	return l
}
