package webhooks

import (
	"context"
	"fmt"
	"time"

	"intumwa/internal/postgres"
)

// loadedFor is how long an endpoint that was read is used without reading it again.
const loadedFor = time.Second

// takeArrivals reads new deliveries and gives them to their endpoints' workers; those
// that do not fit into memory are parked. full means that there may be more.
func (d *deliverer) takeArrivals(ctx context.Context) (full bool, err error) {
	found, full, err := d.readArrivals(ctx)
	if err != nil || len(found) == 0 {
		return false, err
	}
	// A change that was made before one of them was written counts for it.
	if err := d.reloadChanged(ctx); err != nil {
		return false, err
	}
	if err := d.load(ctx, found); err != nil {
		return false, err
	}
	now := time.Now()
	d.mu.Lock()
	for _, a := range found {
		d.arrivals.note(a.job.seq, a.todo, now)
		if !a.todo {
			continue
		}
		e := d.workers[a.company]
		a.job.since, a.job.term = now, d.term
		if !e.accepts() || d.waiting >= maxWaitingAll {
			d.parked = append(d.parked, parked{a.company, a.job, a.job.at})
			continue
		}
		e.waiting = append(e.waiting, a.job)
		d.waiting++
	}
	for _, a := range found {
		d.begin(d.workers[a.company])
	}
	d.mu.Unlock()
	return full, nil
}

// load makes the workers of new deliveries, and reads their endpoints unless that was
// done within loadedFor.
func (d *deliverer) load(ctx context.Context, found []arrived) error {
	d.mu.Lock()
	var companies []int64
	asked := make(map[int64]bool)
	for _, a := range found {
		if e := d.workers[a.company]; !asked[a.company] && (e == nil || time.Since(e.loaded) > loadedFor) {
			asked[a.company] = true
			companies = append(companies, a.company)
		}
	}
	d.mu.Unlock()
	return d.reload(ctx, companies)
}

// reload reads endpoints again. Those that are switched off get no more calls: their
// waiting deliveries are parked.
func (d *deliverer) reload(ctx context.Context, companies []int64) error {
	if len(companies) == 0 {
		return nil
	}
	current, err := d.stored(ctx, `company_id = ANY($1) AND active`, companies)
	if err != nil {
		return err
	}
	active := make(map[int64]storedEndpoint, len(current))
	for _, s := range current {
		active[s.company] = s
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, company := range companies {
		e := d.worker(company)
		e.loaded = time.Now()
		if s, ok := active[company]; ok {
			d.setTarget(e, s)
			d.queueFetch(e)
			d.begin(e)
			continue
		}
		e.target = nil
		d.parkWaiting(e, e.loaded)
	}
	return nil
}

// worker returns a company's worker; the caller holds the mutex.
func (d *deliverer) worker(company int64) *endpointWorker {
	e := d.workers[company]
	if e == nil {
		e = newEndpointWorker(company)
		d.workers[company] = e
	}
	return e
}

// setTarget gives a worker its endpoint's current URL and secret.
func (d *deliverer) setTarget(e *endpointWorker, s storedEndpoint) {
	e.failing = s.failing
	if e.target != nil && e.target.storedURL == s.url && e.target.storedSecret == s.secret+" "+s.previous {
		return
	}
	t, err := d.newTarget(s)
	if err != nil {
		if e.target != nil || !e.broken {
			d.log.Error("webhook endpoint cannot be used; its deliveries wait", "company_id", s.company, "error", err)
		}
		e.target, e.broken = nil, true
		return
	}
	e.target, e.broken = t, false
}

// parkWaiting takes the deliveries that wait since cut or longer out of memory.
func (d *deliverer) parkWaiting(e *endpointWorker, cut time.Time) {
	before := len(e.waiting)
	for _, j := range e.dropWaiting(cut) {
		d.parked = append(d.parked, parked{e.company, j, j.at})
	}
	d.waiting -= before - len(e.waiting)
}

// parked is a new delivery to be written to webhook_undelivered.
type parked struct {
	company int64
	job     job
	due     time.Time
}

// parkOld parks deliveries that have waited for maxWaitingTime, so that the next owner
// reads little again.
func (d *deliverer) parkOld() {
	cut := time.Now().Add(-maxWaitingTime)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.workers {
		if len(e.waiting) > 0 && !e.waiting[0].since.After(cut) {
			d.parkWaiting(e, cut)
		}
	}
}

// park writes the parked deliveries to webhook_undelivered.
func (d *deliverer) park(ctx context.Context) error {
	d.mu.Lock()
	batch := d.parked
	d.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	companies, ids, due := make([]int64, len(batch)), make([]int64, len(batch)), make([]time.Time, len(batch))
	for i, p := range batch {
		companies[i], ids[i], due[i] = p.company, p.job.id, p.due
	}
	_, err := d.pool.Exec(ctx, `
		INSERT INTO webhook_undelivered (company_id, id, due)
		SELECT p.company_id, p.id, p.due FROM unnest($2::bigint[], $3::bigint[], $4::timestamptz[]) AS p(company_id, id, due)
		WHERE EXISTS (SELECT FROM webhook_owner WHERE one AND epoch = $1)
		ORDER BY p.company_id, p.id
		ON CONFLICT DO NOTHING`, d.epoch.Load(), companies, ids, due)
	if err != nil {
		return fmt.Errorf("parking %d webhooks: %w", len(batch), err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parked = d.parked[len(batch):]
	for _, p := range batch {
		if p.job.term != d.term {
			continue
		}
		d.arrivals.finish(p.job.seq)
		e := d.workers[p.company]
		e.due, e.last = true, position{}
		d.queueFetch(e)
	}
	return nil
}

// findDue finds the endpoints with deliveries that are due, and returns how long no
// other will be due.
func (d *deliverer) findDue(ctx context.Context) (time.Duration, error) {
	found, err := d.dueEndpoints(ctx)
	if err != nil {
		return 0, err
	}
	pause, oldest := d.opts.Idle, time.Duration(0)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range found {
		if s.wait > 0 {
			pause = min(pause, s.wait)
			continue
		}
		oldest = max(oldest, -s.wait)
		e := d.worker(s.company)
		d.setTarget(e, s)
		e.loaded, e.due = time.Now(), true
		d.queueFetch(e)
	}
	for _, e := range d.workers {
		if len(e.waiting) > 0 && e.target != nil {
			oldest = max(oldest, postgres.Now().Sub(e.waiting[0].at))
		}
	}
	d.metrics.oldest.Set(oldest.Seconds())
	return pause, nil
}

// queueFetch puts an endpoint with due deliveries into the fetch queue. The caller
// holds the mutex.
func (d *deliverer) queueFetch(e *endpointWorker) {
	if e.due && !e.inFetchQueue && e.target != nil {
		e.inFetchQueue = true
		d.fetchQueue = append(d.fetchQueue, e)
	}
}

// takeDue fetches due deliveries of all endpoints that have room for some, in one
// statement, and starts their calls.
func (d *deliverer) takeDue(ctx context.Context) error {
	wishes := d.planFetch()
	if len(wishes.companies) == 0 {
		return nil
	}
	if err := d.reload(ctx, wishes.stale); err != nil {
		d.abandonFetch(wishes.companies)
		return err
	}
	fetched, err := d.fetch(ctx, wishes)
	if err == nil { // a change that was made before one of them was due again counts for it
		err = d.reloadChanged(ctx)
	}
	if err != nil {
		d.abandonFetch(wishes.companies)
		return err
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, company := range wishes.companies {
		e, got := d.workers[company], fetched[company]
		e.due, e.last = len(got) == int(wishes.limits[i]), position{}
		if e.due {
			e.last = got[len(got)-1].position
		}
		for _, f := range got {
			if e.undelivered[f.job.id] || e.target == nil {
				continue
			}
			e.undelivered[f.job.id] = true
			f.since, f.term = now, d.term
			e.waiting = append(e.waiting, f.job)
			d.waiting++
		}
		e.fetched()
		d.queueFetch(e)
		d.begin(e)
	}
	return nil
}

// fetchPlan says for which companies how many due deliveries are fetched.
type fetchPlan struct {
	companies []int64
	limits    []int32 // including those in memory, which the fetch may find again
	last      []position
	stale     []int64 // whose endpoints are read again first
}

// planFetch takes endpoints from the fetch queue. For untried and slow endpoints no
// more deliveries are fetched than their class has free slots.
func (d *deliverer) planFetch() (w fetchPlan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	free := [classes]int{untried: d.slots[untried].free, slow: d.slots[slow].free, quick: prefetchMax * d.opts.InFlight}
	var left []*endpointWorker
	for _, e := range d.fetchQueue {
		room := min(e.fetchLimit(), free[e.class])
		if room == 0 || e.target == nil {
			left = append(left, e)
			continue
		}
		free[e.class] -= room
		e.inFetchQueue, e.fetching = false, true
		w.companies, w.limits, w.last = append(w.companies, e.company), append(w.limits, int32(room+len(e.undelivered))), append(w.last, e.last)
		if time.Since(e.loaded) > loadedFor {
			w.stale = append(w.stale, e.company)
		}
	}
	d.fetchQueue = left
	return w
}

// abandonFetch returns endpoints to the fetch queue after a failed fetch.
func (d *deliverer) abandonFetch(companies []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, company := range companies {
		e := d.workers[company]
		e.fetched()
		d.queueFetch(e)
	}
}
