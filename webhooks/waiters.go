package webhooks

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// pollEvery is how often a process looks for events of all companies whose consumers wait.
const (
	pollEvery  = 500 * time.Millisecond
	pollWithin = 2 * time.Second
)

// waiters are the requests of this process that wait for events. They hold no connection. They are woken by a commit of
// this process, and by one query for all of them every pollEvery, which one of them makes.
type waiters struct {
	hosted atomic.Bool // the server does not tell its origin

	mu sync.Mutex
	of map[int64]map[*waiter]struct{} // by company
	// when a look through all of a company's events without a position last found none
	through map[int64]time.Time
	polled  time.Time
	ended   chan struct{} // closed by EndWaits
}

type waiter struct {
	after int64
	wake  chan struct{}
}

func newWaiters() *waiters {
	return &waiters{of: make(map[int64]map[*waiter]struct{}), through: make(map[int64]time.Time),
		ended: make(chan struct{})}
}

// wake wakes the waiters of companies. It never blocks.
func (w *waiters) wake(companies []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.of) == 0 {
		return
	}
	for _, company := range companies {
		for each := range w.of[company] {
			select {
			case each.wake <- struct{}{}:
			default:
			}
		}
	}
}

// since returns the bound of positions for a look at a company's events without one: those below it were recorded
// within freshFor, or at any time if it is time to look for the others.
func (w *waiters) since(company int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.through[company]) >= lookThroughEvery {
		return 0
	}
	return -postgres.Now().Add(-freshFor).UnixMicro()
}

// looked notes a look with this bound that found no event without a position.
func (w *waiters) looked(company, since int64) {
	if since == 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.through[company] = time.Now()
	}
}

// enter adds a waiter until leave.
func (w *waiters) enter(company, after int64) (each *waiter, leave func()) {
	each = &waiter{after, make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[company] == nil {
		w.of[company] = make(map[*waiter]struct{})
	}
	w.of[company][each] = struct{}{}
	return each, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.of[company], each); len(w.of[company]) == 0 {
			delete(w.of, company)
		}
	}
}

// Await returns when a company may have an event after a place, when until is past or ctx ends, and after EndWaits. An
// event is noticed within a second; one of a transaction that commits more than ten seconds after its event, within
// five. The caller limits how many wait. ended is true after EndWaits.
func (w *Webhooks) Await(ctx context.Context, company sms.CompanyID, after Place, until time.Time) (ended bool) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	each, leave := w.waiters.enter(int64(company), after.Position)
	defer leave()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		w.poll(ctx)
		select {
		case <-each.wake:
			return false
		case <-ctx.Done():
			return false
		case <-w.waiters.ended:
			return true
		case <-tick.C:
		}
	}
}

// EndWaits ends all calls of Await, and later ones at once: the process shuts down.
func (w *Webhooks) EndWaits() {
	w.waiters.mu.Lock()
	defer w.waiters.mu.Unlock()
	select {
	case <-w.waiters.ended:
	default:
		close(w.waiters.ended)
	}
}

// poll looks for events of all companies with waiters, if nobody has within pollEvery. During an outage it finds none.
func (w *Webhooks) poll(ctx context.Context) {
	companies, after, since := w.waiters.due()
	if companies == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollWithin) // it is for the others too
	defer cancel()
	var found []int64
	var i int
	var fresh, numbered bool
	err := postgres.Each(ctx, w.lookups, "looking for events", []any{&i, &fresh, &numbered}, func() error {
		if fresh || numbered {
			found = append(found, companies[i-1])
		}
		if !fresh {
			w.waiters.looked(companies[i-1], since[i-1])
		}
		return nil
	}, `
		SELECT w.place, EXISTS (SELECT FROM events e WHERE e.company_id = w.company_id AND e.position < w.since),
			EXISTS (SELECT FROM events e WHERE e.company_id = w.company_id AND e.position > w.after)
		FROM (SELECT unnest($1::bigint[]) AS company_id, unnest($2::bigint[]) AS after, unnest($3::bigint[]) AS since,
		generate_subscripts($1::bigint[], 1) AS place) w`,
		companies, after, since)
	if err != nil {
		w.log.Debug("events cannot be looked for; trying again", "error", err)
		return
	}
	w.waiters.wake(found)
}

// due returns the companies with waiters, the place that all of a company's have reached, and where to look for events
// without a position; nil if it is not time.
func (w *waiters) due() (companies, after, since []int64) {
	w.mu.Lock()
	if time.Since(w.polled) < pollEvery*9/10 {
		w.mu.Unlock()
		return nil, nil, nil
	}
	w.polled = time.Now()
	for company, all := range w.of {
		reached := int64(-1)
		for each := range all {
			if reached < 0 || each.after < reached {
				reached = each.after
			}
		}
		companies, after = append(companies, company), append(after, reached)
	}
	w.mu.Unlock()
	for _, company := range companies {
		since = append(since, w.since(company))
	}
	return companies, after, since
}
