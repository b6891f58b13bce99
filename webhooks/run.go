package webhooks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"intumwa/internal/postgres"
)

const (
	claimPause    = 5 * time.Millisecond // between claims: many deliveries share a transaction
	lookShare     = 10                   // pause between looks, in durations of a look
	mostLookPause = 5 * time.Second      // limits how long a look that waited for PostgreSQL delays the next one
	lookTimeout   = 30 * time.Second     // of a look; longer than any look that need not wait
	recentlyDue   = 2 * time.Second      // how far back most looks go
	lookThrough   = 20                   // pause between looks that go back to the oldest delivery, in Options.Idle
	outagePause   = 500 * time.Millisecond
)

// Run delivers until ctx ends. Then it claims no new deliveries, gives calls in flight at most Options.Drain, stores
// their results, and returns nil. Any number of processes may run at the same time.
func (w *Webhooks) Run(ctx context.Context) error {
	background := context.WithoutCancel(ctx)
	calling, endCalls := context.WithCancel(background)
	defer endCalls()
	storing, endStoring := context.WithCancel(background)
	defer endStoring()

	d := newDeliverer(calling, w.core)
	w.running.Store(d)
	var recording, purging sync.WaitGroup
	recording.Go(func() { d.record(storing) })
	purging.Go(func() { w.runPurge(ctx) })
	defer purging.Wait()

	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(w.opts.Drain, endCalls)
		time.AfterFunc(w.opts.Drain+lastStatement, endStoring)
	})()

	d.claimLoop(ctx)
	w.running.Store(nil)
	d.metrics.delivering.Set(0)
	d.mu.Lock()
	d.stopping = true
	for d.free < d.opts.InFlight {
		d.ended.Wait()
	}
	d.stopped = true
	var left []*job // those without room
	for _, e := range d.workers {
		left = append(left, e.waiting...)
	}
	d.mu.Unlock()
	for _, j := range left {
		d.outcomes <- outcome{job: *j, ended: time.Now()}
	}
	close(d.outcomes)
	recording.Wait()
	w.client.closeIdle(0)
	return nil
}

// claimLoop claims due deliveries and starts their calls in a loop until ctx ends. It wakes on a kick, when a call
// leaves room, and for the next look.
func (d *deliverer) claimLoop(ctx context.Context) {
	outage := false
	for ctx.Err() == nil {
		more, err := d.round(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil && !outage:
			d.metrics.delivering.Set(0)
			d.log.Error("webhook deliveries cannot be read; trying again", "event", "webhook_deliveries_unread", "error", err)
		case err == nil && outage:
			d.log.Info("webhook deliveries are read again", "event", "webhook_deliveries_read")
		}
		if outage = err != nil; outage {
			wait(ctx, outagePause)
			continue
		}
		wait(ctx, claimPause)
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-d.kick:
			d.nextLook = d.earliest
		case <-d.freed:
		case <-time.After(time.Until(d.nextLook)):
		}
	}
}

// round looks for due deliveries, if it is time, and claims some. more means that there is more to claim at once.
func (d *deliverer) round(ctx context.Context) (more bool, err error) {
	if start := time.Now(); !start.Before(d.nextLook) {
		since := postgres.Now().Add(-recentlyDue)
		through := d.changed.Swap(false) || !start.Before(d.throughAt)
		if through {
			since = time.Time{}
		}
		companies, oldest, err := d.look(ctx, since)
		if err == nil && through {
			d.metrics.oldest.Set(oldest.Seconds())
			d.throughAt = start.Add(lookThrough * d.opts.Idle)
			err = errors.Join(d.endFirstCalls(ctx), d.countEndpoints(ctx))
		}
		if err != nil {
			d.changed.Store(d.changed.Load() || through)
			return false, err
		}
		d.mu.Lock()
		for _, company := range companies {
			if d.workers[company] == nil {
				d.workers[company] = newWorker(company)
			}
			d.enqueue(d.workers[company], position{due: since})
		}
		d.mu.Unlock()
		d.earliest = time.Now().Add(lookPause(time.Since(start)))
		d.nextLook = start.Add(max(d.opts.Idle, d.earliest.Sub(start)))
	}
	d.metrics.delivering.Set(1)
	return d.claimQueued()
}

func lookPause(took time.Duration) time.Duration { return min(mostLookPause, lookShare*took) }

// look returns the active endpoints with unclaimed deliveries that became due since a time, and how long the oldest has
// been due. It costs one index probe per endpoint, however long the backlogs.
func (c *core) look(ctx context.Context, since time.Time) (companies []int64, oldest time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var company int64
	var age float64
	err = postgres.Each(ctx, c.pool, "looking for due webhooks", []any{&company, &age}, func() error {
		companies, oldest = append(companies, company), max(oldest, time.Duration(age*float64(time.Second)))
		return nil
	}, `
		SELECT e.company_id, extract(epoch FROM now() - u.due)::float8
		FROM webhook_endpoints e CROSS JOIN LATERAL (
			SELECT due FROM webhook_undelivered
			WHERE company_id = e.company_id AND due > $1 AND due <= now() AND (claimed_until IS NULL OR claimed_until <= now())
			ORDER BY due LIMIT 1) u
		WHERE e.active`, since)
	return companies, oldest, err
}

// endFirstCalls makes the deliveries of first calls due whose process died or lost their results.
func (c *core) endFirstCalls(ctx context.Context) error {
	_, err := c.pool.Exec(ctx, `
		WITH over AS (
			DELETE FROM webhook_first_calls WHERE id = ANY(ARRAY(SELECT id FROM webhook_first_calls WHERE ends <= now()
				FOR UPDATE SKIP LOCKED)) RETURNING *
		)
		INSERT INTO webhook_undelivered (company_id, id, at, due, phone_number, labels, data)
		SELECT unnest(company_ids), unnest(ids), unnest(at), now(), unnest(phone_numbers), unnest(labels), unnest(data)
			FROM over`)
	if err != nil {
		return fmt.Errorf("ending first calls of webhooks: %w", err)
	}
	return nil
}

// countEndpoints updates the metric of endpoints by state.
func (c *core) countEndpoints(ctx context.Context) error {
	var active, inactive int64
	err := c.pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE active), count(*) FILTER (WHERE NOT active) FROM webhook_endpoints
			WHERE company_id > 0`).
		Scan(&active, &inactive)
	if err != nil {
		return fmt.Errorf("counting webhook endpoints: %w", err)
	}
	c.metrics.active.Set(float64(active))
	c.metrics.inactive.Set(float64(inactive))
	return nil
}
