package webhooks

import (
	"context"
	"fmt"
	"time"

	"intumwa/internal/postgres"
)

const (
	// A claim lasts for beginWithin, the timeout of a call, and storeWithin. Then any
	// process may claim the delivery again.
	beginWithin = 10 * time.Second // from the claim to the beginning of the call
	storeWithin = 10 * time.Second // from the end of the call to its result

	// claimCompanies is the most companies of one claim. Each takes an advisory lock,
	// and the server has a table of limited size for them.
	claimCompanies = 500
)

// job is a delivery that this process has claimed.
type job struct {
	company   int64
	id        int64
	at        time.Time
	number    string
	data      string // of the body, of events that are about no message of the company
	reference string
	tries     int       // attempts of this round before this one
	claim     time.Time // webhook_undelivered.claimed_until: only its holder records a result
	beginBy   time.Time // by this machine's clock: past it the claim may end before the call does
	target    *target   // the endpoint as it was at the claim
}

// position is a position among a company's undelivered deliveries.
type position struct {
	due time.Time
	id  int64
}

// look returns the active endpoints with deliveries that are due and not claimed, since
// the given time or later, and how long the first of each has been due. It costs one
// index probe an endpoint, however long the backlogs. Rows that were deleted and are
// kept for an old snapshot are passed one by one: hence the bound.
func (w *Webhooks) look(ctx context.Context, since time.Time) (companies []int64, oldest time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var company int64
	var age float64
	err = postgres.Each(ctx, w.pool, "looking for due webhooks", []any{&company, &age}, func() error {
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

// wish is how many deliveries of an endpoint are to be claimed, and behind which.
type wish struct {
	worker *worker
	from   position
	most   int
}

// claimed is what was claimed of a company, and its endpoint at that moment.
type claimed struct {
	endpoint storedEndpoint
	jobs     []job
	last     position
}

// claimLasts is how long a claim lasts.
func (w *Webhooks) claimLasts() time.Duration { return beginWithin + w.opts.Timeout + storeWithin }

// claim claims due deliveries of companies with active endpoints. When it returns
// without an error, the transactions that wrote the deliveries are as safe as the claim
// itself: its COMMIT waits for the synchronous standby, if there is one, and comes after
// theirs in the log. So an event is not posted before it is safe. A claim whose COMMIT got
// no answer is an error; nobody calls its deliveries until it ends.
//
// One process at a time claims of one company: the others skip it. FOR UPDATE SKIP LOCKED
// would do the same for each row, with one more record of WAL for each.
func (w *Webhooks) claim(ctx context.Context, wishes []wish) (map[int64]*claimed, error) {
	n := len(wishes)
	companies, most, due, ids := make([]int64, n), make([]int32, n), make([]time.Time, n), make([]int64, n)
	for i, each := range wishes {
		companies[i], most[i], due[i], ids[i] = each.worker.company, int32(each.most), each.from.due, each.from.id
	}
	ctx, cancel := context.WithTimeout(ctx, beginWithin) // a later answer is of no use
	defer cancel()
	all := make(map[int64]*claimed, n)
	var s storedEndpoint
	j := job{beginBy: time.Now().Add(beginWithin)}
	var at time.Time
	err := postgres.Each(ctx, w.pool, "claiming due webhooks", append(s.fields(), &j.id, &j.at, &j.number, &j.data, &j.reference, &j.tries, &j.claim, &at), func() error {
		c := all[s.company]
		if c == nil {
			c = &claimed{endpoint: s}
			all[s.company] = c
		}
		j.company = s.company
		c.jobs, c.last = append(c.jobs, j), position{at, j.id}
		return nil
	}, `
		WITH wish AS MATERIALIZED (
			SELECT * FROM unnest($1::bigint[], $2::integer[], $3::timestamptz[], $4::bigint[]) AS l(company_id, most, due, id)
			WHERE pg_try_advisory_xact_lock(hashtextextended('webhook_undelivered', l.company_id))
		), next AS MATERIALIZED (
			SELECT `+storedColumns+`, u.*
			FROM wish JOIN webhook_endpoints e ON e.company_id = wish.company_id AND e.active
			CROSS JOIN LATERAL (
				SELECT u.id, u.at, u.phone_number, u.data, u.client_reference, u.tries, u.due, u.ctid AS place FROM webhook_undelivered u
				WHERE u.company_id = wish.company_id AND u.due <= now() AND (u.due, u.id) > (wish.due, wish.id)
					AND (u.claimed_until IS NULL OR u.claimed_until <= now())
				ORDER BY u.due, u.id LIMIT wish.most) u
			ORDER BY e.company_id, u.id
		), taken AS ( -- a row that another process changed after this statement began is checked again, and left
			UPDATE webhook_undelivered u SET claimed_until = now() + $5::interval FROM next
			WHERE u.ctid = next.place AND u.due <= now() AND (u.claimed_until IS NULL OR u.claimed_until <= now())
			RETURNING next.*, u.claimed_until
		)
		SELECT company_id, url, secret, previous, failing, id, at, phone_number, coalesce(data, ''), coalesce(client_reference, ''),
			tries, claimed_until, due
		FROM taken ORDER BY due, id`, companies, most, due, ids, w.claimLasts())
	if err != nil {
		return nil, err
	}
	return all, nil
}

// endBlocks is how many blocks of webhook_undelivered a look for first calls that did not end reads. What was given up may fill
// hundreds of thousands.
const endBlocks = 2048

// handedOver makes first calls due again that a process was handed and did not end: it died, or its results were lost. It reads $2
// blocks from $1 on, and returns the block after them; 0 at the end of the table.
const handedOver = `
	WITH over AS (
		SELECT company_id, id FROM webhook_undelivered
		WHERE ctid >= format('(%s,0)', $1::bigint)::tid AND ctid < format('(%s,0)', $1::bigint + $2::bigint)::tid
			AND due IS NULL AND claimed_until <= now()
		ORDER BY company_id, id FOR UPDATE SKIP LOCKED
	), again AS (
		UPDATE webhook_undelivered u SET due = now(), claimed_until = NULL FROM over WHERE u.company_id = over.company_id AND u.id = over.id
	)
	SELECT CASE WHEN $1::bigint + $2::bigint < pg_relation_size('webhook_undelivered') / current_setting('block_size')::int
		THEN $1::bigint + $2::bigint ELSE 0 END`

// endHanded runs handedOver from a block on, and returns where it continues.
func (w *Webhooks) endHanded(ctx context.Context, from int64) (next int64, err error) {
	if err := w.pool.QueryRow(ctx, handedOver, from, endBlocks).Scan(&next); err != nil {
		return from, fmt.Errorf("looking for webhooks that no process calls any more: %w", err)
	}
	return next, nil
}

// countEndpoints updates the metric of endpoints by state.
func (w *Webhooks) countEndpoints(ctx context.Context) error {
	var active, inactive int64
	err := w.pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE active), count(*) FILTER (WHERE NOT active) FROM webhook_endpoints`).
		Scan(&active, &inactive)
	if err != nil {
		return fmt.Errorf("counting webhook endpoints: %w", err)
	}
	w.metrics.active.Set(float64(active))
	w.metrics.inactive.Set(float64(inactive))
	return nil
}
