package webhooks

import (
	"context"
	"fmt"
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

// job is a delivery that this process has claimed.
type job struct {
	company   int64
	id        int64
	at        time.Time
	number    string
	data      string // of the body, for events about no message of the company
	reference string
	tries     int         // attempts of this round before this one
	claim     time.Time   // webhook_undelivered.claimed_until: only its holder records a result
	calls     *firstCalls // that it belongs to; nil: it has a row of its own
	place     int         // in them
	beginBy   time.Time   // on this machine's clock; a call that begins later could outlast the claim
	target    *target     // the endpoint at the time of the claim
}

// position is a position among a company's undelivered deliveries.
type position struct {
	due time.Time
	id  int64
}

// look returns the active endpoints with unclaimed deliveries that became due since the given time, and how long the
// oldest has been due. It costs one index probe per endpoint, however long the backlogs. The limit is needed because
// the probe passes deleted rows that an old snapshot keeps one by one.
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

// wish is how many of an endpoint's deliveries to claim, and after which position.
type wish struct {
	worker *worker
	from   position
	most   int
}

// claimed holds a company's claimed deliveries, and its endpoint at that moment.
type claimed struct {
	endpoint storedEndpoint
	jobs     []job
	last     position
}

func (w *Webhooks) claimLasts() time.Duration { return beginWithin + w.opts.Timeout + storeWithin }

// claim claims due deliveries of companies with active endpoints. Its COMMIT waits for the synchronous standby, if
// there is one, and comes after the COMMITs of the deliveries in the log. So once claim returns without an error, the
// deliveries are as safe as the claim, and no event is posted earlier. A claim whose COMMIT got no reply is an error;
// no process calls its deliveries until it ends.
//
// Only one process at a time claims for a company; the others skip it. FOR UPDATE SKIP LOCKED would do the same per
// row, at the cost of one more WAL record each.
func (w *Webhooks) claim(ctx context.Context, wishes []wish) (map[int64]*claimed, error) {
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

// endFirstCalls makes the deliveries of first calls due whose process died or lost their results. Who deletes the row
// decides about its deliveries.
func (w *Webhooks) endFirstCalls(ctx context.Context) error {
	_, err := w.pool.Exec(ctx, `
		WITH over AS (
			DELETE FROM webhook_first_calls WHERE id = ANY(ARRAY(SELECT id FROM webhook_first_calls WHERE ends <= now() FOR UPDATE SKIP LOCKED)) RETURNING *
		)
		INSERT INTO webhook_undelivered (company_id, id, at, due, phone_number, client_reference, data)
		SELECT unnest(company_ids), unnest(ids), unnest(at), now(), unnest(phone_numbers), unnest(client_references), unnest(data) FROM over`)
	if err != nil {
		return fmt.Errorf("ending first calls of webhooks: %w", err)
	}
	return nil
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
