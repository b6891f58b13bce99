package webhooks

import (
	"context"
	"time"

	"intumwa/internal/postgres"
)

const (
	// A claim lasts for beginWithin, the timeout of a call, and storeWithin. After that any process may claim the
	// delivery again.
	beginWithin = 10 * time.Second // from the claim to the beginning of the call
	storeWithin = 10 * time.Second // from the end of the call to its result

	// claimCompanies limits the companies of one claim: each takes an advisory lock, and the server's lock table is
	// limited.
	claimCompanies = 500
)

// wish is how many of an endpoint's deliveries to claim, and after which position.
type wish struct {
	worker *worker
	from   position
	most   int
}

func (c *core) claimLasts() time.Duration { return beginWithin + c.opts.Timeout + storeWithin }

// claim claims due deliveries of companies with active endpoints. A claim whose COMMIT got no reply is an error: no
// process calls its deliveries until it ends.
//
// Only one process at a time claims for a company; the others skip it. FOR UPDATE SKIP LOCKED would do the same per
// row, at the cost of one more WAL record each.
func (c *core) claim(ctx context.Context, wishes []wish) (map[int64]*claimed, error) {
	n := len(wishes)
	companies, most, due, ids := make([]int64, n), make([]int32, n), make([]time.Time, n), make([]int64, n)
	for i, each := range wishes {
		companies[i], most[i], due[i], ids[i] = each.worker.company, int32(each.most), each.from.due, each.from.id
	}
	ctx, cancel := context.WithTimeout(ctx, beginWithin) // a later reply is useless
	defer cancel()
	all := make(map[int64]*claimed, n)
	var s storedEndpoint
	j := job{beginBy: time.Now().Add(beginWithin)}
	var at time.Time
	err := postgres.Each(ctx, c.pool, "claiming due webhooks",
		append(s.fields(), &j.id, &j.at, &j.number, &j.data, &j.labels, &j.tries, &j.claim, &at, &j.callback), func() error {
			of := all[s.company]
			if of == nil {
				of = &claimed{endpoint: s}
				all[s.company] = of
			}
			j.company = s.company
			of.jobs, of.last = append(of.jobs, new(j)), position{at, j.id}
			return nil
		}, `
		WITH wish AS MATERIALIZED (
			SELECT * FROM unnest($1::bigint[], $2::integer[], $3::timestamptz[], $4::bigint[]) AS l(company_id, most, due, id)
			WHERE pg_try_advisory_xact_lock(hashtextextended('webhook_undelivered', l.company_id))
		), next AS MATERIALIZED (
			SELECT `+storedColumns+`, u.*
			FROM wish JOIN webhook_endpoints e ON e.company_id = wish.company_id AND e.active
			CROSS JOIN LATERAL (
				SELECT u.id, u.at, u.phone_number, u.data, u.labels, u.tries, u.due, u.callback, u.ctid AS place
					FROM webhook_undelivered u
				WHERE u.company_id = wish.company_id AND u.due <= now() AND (u.due, u.id) > (wish.due, wish.id)
					AND (u.claimed_until IS NULL OR u.claimed_until <= now())
				ORDER BY u.due, u.id LIMIT wish.most) u
			ORDER BY e.company_id, u.id
		), taken AS ( -- by ctid: 1 page a row, not 3; a row that changed since is checked again, and left
			UPDATE webhook_undelivered u SET claimed_until = now() + $5::interval FROM next
			WHERE u.ctid = next.place AND u.due <= now() AND (u.claimed_until IS NULL OR u.claimed_until <= now())
			RETURNING next.*, u.claimed_until
		)
		SELECT company_id, url, secret, previous, failing, id, at, phone_number, coalesce(data, ''), coalesce(labels, ''),
			tries, claimed_until, due, coalesce(callback, '')
		FROM taken ORDER BY due, id`, companies, most, due, ids, c.claimLasts())
	if err != nil {
		return nil, err
	}
	return all, nil
}

// plan removes the endpoints with room from the queue. An endpoint has room when half of what it may have is free, so
// that claims stay large. While all calls are taken, no endpoint gets more: waiting deliveries go first, and then their
// callers are free for the queue's next endpoints.
func (d *deliverer) plan() (wishes []wish) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var left []*worker
	free, freeSlow := d.free, d.freeSlow
	for _, e := range d.queue {
		if time.Now().Before(e.pausedUntil) {
			e.queued = false
			continue
		}
		d.begin(e)
		callers := min(e.limit-e.callers, free)
		if e.slow {
			callers = min(callers, freeSlow)
		}
		callers = max(0, callers)
		most := e.most(e.callers+callers) - e.callers - len(e.waiting)
		if free == 0 || 2*e.room() < e.most(e.limit) || most <= 0 || len(wishes) == claimCompanies {
			left = append(left, e)
			continue
		}
		e.queued = false
		free -= callers
		if e.slow {
			freeSlow -= callers
		}
		wishes = append(wishes, wish{worker: e, from: e.from, most: most})
	}
	d.queue = left
	return wishes
}

// claimQueued claims deliveries of all queued endpoints with room, in one statement, and starts their calls. more means
// that an endpoint has more.
func (d *deliverer) claimQueued() (more bool, err error) {
	wishes := d.plan()
	if len(wishes) == 0 {
		return false, nil
	}
	found, err := d.claim(d.calling, wishes) // claimed deliveries are called even at shutdown
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, wish := range wishes {
		e, c := wish.worker, found[wish.worker.company]
		if err != nil {
			d.enqueue(e, wish.from)
		}
		if c == nil {
			continue
		}
		d.assign(e, c)
		if len(c.jobs) == wish.most {
			d.enqueue(e, c.last)
			more = more || 2*e.room() >= e.most(e.limit)
		}
	}
	return more, err
}
