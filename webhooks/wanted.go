package webhooks

import (
	"maps"
	"strconv"
	"sync"
	"time"
)

// commitWithin is how long after Enqueue each kick makes Run look at the company: the
// kick of another transaction may come before this one is committed. A transaction that
// takes longer is found by the next look at all endpoints.
const commitWithin = 100 * time.Millisecond

// wanted collects the companies at which Run looks at its next kick. It holds one entry
// a company at most.
type wanted struct {
	mu        sync.Mutex
	companies map[int64]want
	all       bool // any endpoint may have changed
}

type want struct {
	enqueued time.Time // the last call of Enqueue
	again    bool      // older deliveries are due again
	changed  bool      // the endpoint changed
}

func (w *wanted) add(company int64, what want) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.companies == nil {
		w.companies = make(map[int64]want)
	}
	is := w.companies[company]
	if what.enqueued.IsZero() {
		what.enqueued = is.enqueued
	}
	w.companies[company] = want{what.enqueued, what.again || is.again, what.changed || is.changed}
}

func (w *wanted) everything() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = true
}

// take returns what is wanted. all means that each endpoint may have changed.
func (w *wanted) take(now time.Time) (companies map[int64]want, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	companies = maps.Clone(w.companies)
	for company, is := range w.companies {
		if now.Sub(is.enqueued) > commitWithin {
			delete(w.companies, company)
		} else {
			w.companies[company] = want{enqueued: is.enqueued}
		}
	}
	all, w.all = w.all, false
	return companies, all
}

// EndpointChanged makes Run read a company's endpoint again before its next call. It
// is the callback of a notice; a key that is not a company id means all endpoints. It
// never blocks.
func (w *Webhooks) EndpointChanged(key string) {
	if id, err := strconv.ParseInt(key, 10, 64); err == nil {
		w.wanted.add(id, want{changed: true})
	} else {
		w.wanted.everything()
	}
	w.Kick()
}

// wake wakes Run for a company.
func (w *Webhooks) wake(company int64, what want) {
	w.wanted.add(company, what)
	w.Kick()
}
