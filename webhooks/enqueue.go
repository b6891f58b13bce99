package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
)

// Enqueue records events in the transaction that makes their messages final, after it did. It does so for companies
// with an active endpoint, and for events of Askable only if the endpoint requested them; and for companies that fetch
// events. The caller records each event once: in the transaction of the only transition that causes it. One statement
// covers any number of events and runs no later than the commit (postgres.Pipeline). After the commit of a
// [postgres.Tx] it wakes Run. rule api 6
func (w *Webhooks) Enqueue(ctx context.Context, tx pgx.Tx, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	jobs, asked := make([]job, len(events)), make([]*string, len(events))
	handed := make([]bool, len(events)) // to this process's Run, for their first call
	calls := &firstCalls{id: ulid.Make(), ends: postgres.Now().Add(w.claimLasts())}
	beginBy := time.Now().Add(beginWithin)
	var c columns
	c.growDeliveries(len(events))
	for i := range events {
		e := &events[i]
		stored, err := e.stored()
		if err != nil {
			return fmt.Errorf("enqueueing webhooks: %w", err)
		}
		if e.Data != nil {
			asked[i] = &e.Name
		}
		jobs[i] = job{storedEvent: stored, beginBy: beginBy, calls: calls}
		c.addDelivery(&stored)
	}
	running := w.running.Load()
	var found []*claimed // those handed over, by endpoint
	waits := false       // an event was not handed over
	if postgres.AfterCommit(tx, func() {
		if running != nil {
			running.hand(calls, found)
		}
		if waits {
			w.Kick()
		}
		w.waiters.wake(c.companies)
	}) && running != nil {
		running.takes(c.companies, handed)
	}
	b := &pgx.Batch{}
	b.Queue(enqueueEvents, c.companies, c.ids, c.at, c.numbers, c.labels, c.data, asked, handed, calls.id, calls.ends,
		Pullable()).Query(func(rows pgx.Rows) error {
		var s storedEndpoint
		var places []int32
		_, err := pgx.ForEachRow(rows, append(s.fields(), &places), func() error {
			of := &claimed{endpoint: s, jobs: make([]*job, 0, len(places))}
			calls.outcomes = slices.Grow(calls.outcomes, len(places))
			for _, place := range places {
				if j := &jobs[place-1]; handed[place-1] {
					j.place = len(calls.outcomes)
					of.jobs, calls.outcomes = append(of.jobs, j), append(calls.outcomes, outcome{job: *j})
				} else {
					waits = true
				}
			}
			if len(of.jobs) > 0 {
				found = append(found, of)
			}
			return nil
		})
		return err
	})
	w.queueFinal(b, tx, events)
	return postgres.Pipeline(ctx, tx, fmt.Sprintf("enqueueing %d webhooks", len(events)), b)
}

// enqueueEvents writes the events that their endpoints get: those handed over into webhook_first_calls, the others into
// rows of their own. It also writes those of companies that fetch events. It returns each endpoint with the places of
// its events in the arrays. ON CONFLICT DO NOTHING would write a second WAL record for every row.
const enqueueEvents = `
	WITH n AS MATERIALIZED (
		SELECT unnest($1::bigint[]) AS company_id, unnest($2::bigint[]) AS id, unnest($3::timestamptz[]) AS at,
			unnest($4::text[]) AS phone_number,
			unnest($5::text[]) AS labels, unnest($6::text[]) AS data, unnest($7::text[]) AS asked,
			unnest($8::boolean[]) AS handed,
			generate_subscripts($2::bigint[], 1) AS place
	), new AS MATERIALIZED (
		SELECT n.* FROM n JOIN webhook_endpoints e ON e.company_id = n.company_id AND e.active AND (n.asked IS NULL
			OR n.asked = ANY(e.events))
	), waiting AS (
		INSERT INTO webhook_undelivered (company_id, id, at, due, phone_number, labels, data)
		SELECT company_id, id, at, now(), phone_number, labels, data FROM new WHERE NOT handed
	), calls AS (
		INSERT INTO webhook_first_calls (id, ends, company_ids, ids, at, phone_numbers, labels, data)
		SELECT $9::uuid, $10::timestamptz, array_agg(company_id), array_agg(id), array_agg(at), array_agg(phone_number),
			array_agg(labels), array_agg(data)
		FROM new WHERE handed HAVING count(*) > 0
	), fetched AS (
		INSERT INTO events (company_id, id, at, position, phone_number, labels, data)
		SELECT n.company_id, n.id, n.at, -(extract(epoch FROM clock_timestamp()) * 1000000)::bigint, n.phone_number, n.labels,
			n.data
		FROM n JOIN event_readers r ON r.company_id = n.company_id AND r.since IS NOT NULL
			AND (n.asked IS NULL OR n.asked <> ALL($11::text[]) OR n.asked = ANY(r.events))
	)
	SELECT ` + storedColumns + `, n.places
	FROM (SELECT company_id, array_agg(place) AS places FROM new GROUP BY company_id) n
	JOIN webhook_endpoints e ON e.company_id = n.company_id`
