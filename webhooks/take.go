package webhooks

import (
	"context"
	"fmt"
	"time"
)

// loadedFor is how long what was read of an endpoint is good without a notice.
const loadedFor = time.Second

// takeArrivals reads new deliveries and hands them to their endpoints' workers;
// what does not fit into memory is parked. full tells that there may be more.
func (d *deliverer) takeArrivals(ctx context.Context) (full bool, err error) {
	found, full, err := d.readArrivals(ctx)
	if err != nil || len(found) == 0 {
		return false, err
	}
	if err := d.load(ctx, found); err != nil {
		return false, err
	}
	now := time.Now()
	d.mu.Lock()
	for _, a := range found {
		d.arrivals.saw(a.job.seq, a.todo, now)
		if !a.todo {
			continue
		}
		e := d.workers[a.company]
		a.job.since, a.job.term = now, d.term
		if !e.accepts() || d.waiting >= waitingMostAll {
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

// load makes workers for the companies of what was found, and reads their
// endpoints where that is some time ago.
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

// reload reads endpoints again. Those that are switched off get no more calls:
// what waits for them is parked.
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
			d.aim(e, s)
			d.want(e)
			d.begin(e)
			continue
		}
		e.target = nil
		d.letGo(e, e.loaded)
	}
	return nil
}

// worker is a company's worker; the caller holds the mutex.
func (d *deliverer) worker(company int64) *endpointWorker {
	e := d.workers[company]
	if e == nil {
		e = newEndpointWorker(company)
		d.workers[company] = e
	}
	return e
}

// aim gives a worker its endpoint's current URL and secret.
func (d *deliverer) aim(e *endpointWorker, s storedEndpoint) {
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

// letGo takes what waits for an endpoint since cut or longer out of memory.
func (d *deliverer) letGo(e *endpointWorker, cut time.Time) {
	before := len(e.waiting)
	for _, j := range e.letGo(cut) {
		d.parked = append(d.parked, parked{e.company, j, j.at})
	}
	d.waiting -= before - len(e.waiting)
}

// parked is a new delivery that is to be written down as due.
type parked struct {
	company int64
	job     job
	due     time.Time
}

// letGoOld parks what has been waiting long, so that little is read again by
// whoever takes over.
func (d *deliverer) letGoOld() {
	cut := time.Now().Add(-waitingLongest)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.workers {
		if len(e.waiting) > 0 && !e.waiting[0].since.After(cut) {
			d.letGo(e, cut)
		}
	}
}

// park writes down what does not fit into memory.
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
		d.arrivals.close(p.job.seq)
		e := d.workers[p.company]
		e.due, e.last = true, position{}
		d.want(e)
	}
	return nil
}

// findDue finds the endpoints with deliveries that are due again, and returns
// how long nothing else will be due.
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
		d.aim(e, s)
		e.loaded, e.due = time.Now(), true
		d.want(e)
	}
	for _, e := range d.workers {
		if len(e.waiting) > 0 && e.target != nil {
			oldest = max(oldest, time.Since(e.waiting[0].at))
		}
	}
	d.metrics.oldest.Set(oldest.Seconds())
	return pause, nil
}

// want puts an endpoint with due deliveries among those for which some are to be
// fetched.
func (d *deliverer) want(e *endpointWorker) {
	if e.due && !e.wanting && e.target != nil {
		e.wanting = true
		d.wanting = append(d.wanting, e)
	}
}

// takeDue fetches for all endpoints that have due deliveries and room, in one
// statement, and starts their calls.
func (d *deliverer) takeDue(ctx context.Context) error {
	wishes := d.wishes()
	if len(wishes.companies) == 0 {
		return nil
	}
	if err := d.reload(ctx, wishes.stale); err != nil {
		d.giveUp(wishes.companies)
		return err
	}
	fetched, err := d.fetch(ctx, wishes)
	if err != nil {
		d.giveUp(wishes.companies)
		return err
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, company := range wishes.companies {
		e, got := d.workers[company], fetched[company]
		e.due, e.last = len(got) == int(wishes.rooms[i]), position{}
		if e.due {
			e.last = got[len(got)-1].position
		}
		for _, f := range got {
			if e.again[f.job.id] || e.target == nil {
				continue
			}
			e.again[f.job.id] = true
			f.since, f.term = now, d.term
			e.waiting = append(e.waiting, f.job)
			d.waiting++
		}
		e.fetched()
		d.want(e)
		d.begin(e)
	}
	return nil
}

// wishes are for whom how many due deliveries are to be fetched.
type wishes struct {
	companies []int64
	rooms     []int32 // with those in hand, which may be among what is found
	last      []position
	stale     []int64 // whose endpoints are to be read again first
}

// wishes takes them from the queue of those who want. For the fresh and the slow
// no more are fetched than their pools have slots for.
func (d *deliverer) wishes() (w wishes) {
	d.mu.Lock()
	defer d.mu.Unlock()
	free := [classes]int{fresh: d.slots[fresh].free, slow: d.slots[slow].free, quick: prefetchMax * d.opts.InFlight}
	var left []*endpointWorker
	for _, e := range d.wanting {
		room := min(e.room(), free[e.class])
		if room == 0 || e.target == nil {
			left = append(left, e)
			continue
		}
		free[e.class] -= room
		e.wanting, e.fetching = false, true
		w.companies, w.rooms, w.last = append(w.companies, e.company), append(w.rooms, int32(room+len(e.again))), append(w.last, e.last)
		if time.Since(e.loaded) > loadedFor {
			w.stale = append(w.stale, e.company)
		}
	}
	d.wanting = left
	return w
}

// giveUp puts endpoints back in the queue for which nothing could be fetched.
func (d *deliverer) giveUp(companies []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, company := range companies {
		e := d.workers[company]
		e.fetched()
		d.want(e)
	}
}
