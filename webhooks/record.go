package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"intumwa/internal/postgres"
)

const (
	recordBatch = 1000
	// Results are collected for recordLinger: nothing waits for them, and a transaction costs
	// more than a row.
	recordLinger   = 100 * time.Millisecond
	recordPause    = 100 * time.Millisecond // after a failed statement, doubling
	maxRecordPause = 2 * time.Second        // the longest
)

// result is a finished attempt that is not stored yet. Without an attempt the delivery is given
// back: pending, and due at once.
type result struct {
	job
	state   state
	delay   time.Duration // from the end of the attempt to the next one, while pending
	ended   time.Time
	attempt Attempt
}

func (r *result) called() bool { return r.attempt.Result != "" }

// state of a delivery, as stored.
type state int16

const (
	pending   state = 0
	delivered state = 1
	exhausted state = 2
)

// schedule lists the delays between a failure and the next attempt. rule api 6
type schedule []time.Duration

// after returns a delivery's state after attempt number tries (from 1) of its round, and the
// delay before the next attempt.
func (s schedule) after(tries int, success bool) (state, time.Duration) {
	switch {
	case success:
		return delivered, 0
	case tries > len(s):
		return exhausted, 0
	}
	return pending, s[tries-1]
}

// record stores results in batches until the channel is closed. While PostgreSQL is down it
// retries the same batch, and the full channel blocks further calls. When ctx ends it gives up,
// and the deliveries are repeated.
func (d *deliverer) record(ctx context.Context) {
	batch := make([]result, 0, recordBatch)
	for r := range d.results {
		batch = append(batch[:0], r)
		linger := time.After(recordLinger)
		for more := true; more && len(batch) < recordBatch; {
			select {
			case r, more = <-d.results:
				if more {
					batch = append(batch, r)
				}
			case <-linger:
				more = false
			}
		}
		// Every process locks rows in this order, so there are no deadlocks.
		slices.SortStableFunc(batch, func(a, b result) int {
			return cmp.Or(cmp.Compare(a.company, b.company), cmp.Compare(a.id, b.id))
		})
		d.storeUntilDone(ctx, batch)
	}
}

func (d *deliverer) storeUntilDone(ctx context.Context, batch []result) {
	pause := recordPause
	for first := true; ; first = false {
		err := postgres.Retry(ctx, func() error { return d.store(ctx, batch, !first) })
		switch {
		case err == nil:
			if !first {
				d.log.Info("webhook results are stored again", "event", "webhook_results_stored")
			}
			if err := d.noteHealth(ctx, batch); err != nil {
				d.log.Warn("state of webhook endpoints could not be stored", "event", "endpoint_state_not_stored", "error", err) // a later result stores it
			}
			return
		case ctx.Err() != nil, postgres.Refused(err):
			d.forget(batch)
			d.log.Error("webhook results are lost; their deliveries will be repeated when their claims end", "event", "webhook_results_lost", "count", len(batch), "error", err)
			return
		case first:
			d.log.Error("webhook results cannot be stored; trying again", "event", "webhook_results_not_stored", "count", len(batch), "error", err)
		}
		wait(ctx, pause)
		pause = min(2*pause, maxRecordPause)
	}
}

// store writes a batch in one statement. A result whose claim is no longer held changes
// nothing: another process has the delivery, or an earlier call of store wrote the result and
// its reply was lost. The first result of a delivery in webhook_first_calls writes its row; only if
// store was called with the batch before (again) may there be one.
func (d *deliverer) store(ctx context.Context, batch []result, again bool) error {
	n := len(batch)
	companies, ids, claims, states := make([]int64, n), make([]int64, n), make([]time.Time, n), make([]int16, n)
	tries, delays, attempts := make([]int16, n), make([]float64, n), make([]*string, n)
	at, numbers, references, data := make([]time.Time, n), make([]string, n), make([]*string, n), make([]*string, n)
	calls, first := make([]callsID, n), map[callsID]int{} // first counts the batch's results by webhook_first_calls.id
	for i := range batch {
		r := &batch[i]
		if calls[i] = r.calls; r.calls != (callsID{}) {
			first[r.calls]++
		}
		companies[i], ids[i], claims[i], states[i] = r.company, r.id, r.claim, int16(r.state)
		at[i], numbers[i], references[i], data[i] = r.at, r.number, orNull(r.reference), orNull(r.data)
		tries[i], delays[i] = int16(r.tries), (r.delay - time.Since(r.ended)).Seconds()
		if r.called() {
			text := string(jsonOf([]Attempt{r.attempt}))
			tries[i], attempts[i] = tries[i]+1, &text
		}
	}
	partial, complete := []callsID{}, []callsID{}
	d.mu.Lock()
	for id, n := range first {
		if d.firstCalls[id] == n {
			complete = append(complete, id)
		} else {
			partial = append(partial, id)
		}
	}
	d.mu.Unlock()
	_, err := d.pool.Exec(ctx, `
		WITH r AS (
			SELECT unnest($1::bigint[]) AS company_id, unnest($2::bigint[]) AS id, unnest($3::timestamptz[]) AS claim, unnest($4::smallint[]) AS state,
				unnest($5::smallint[]) AS tries, unnest($6::float8[]) AS delay, unnest($7::text[]) AS attempt, nullif(unnest($8::uuid[]), '00000000-0000-0000-0000-000000000000') AS calls,
				unnest($9::timestamptz[]) AS at, unnest($10::text[]) AS phone_number, unnest($11::text[]) AS client_reference, unnest($12::text[]) AS data
		), partial AS MATERIALIZED (
			SELECT id FROM webhook_first_calls WHERE id = ANY($13::uuid[]) ORDER BY id FOR KEY SHARE
		), complete AS (
			DELETE FROM webhook_first_calls WHERE id = ANY($14::uuid[]) RETURNING id
		), first AS MATERIALIZED (
			SELECT r.* FROM r
			WHERE r.calls = ANY(ARRAY(SELECT id FROM partial UNION ALL SELECT id FROM complete))
				AND NOT ($15 AND EXISTS (SELECT FROM webhook_deliveries w WHERE w.company_id = r.company_id AND w.id = r.id))
		), failed AS (
			INSERT INTO webhook_undelivered (company_id, id, at, phone_number, client_reference, data, due, tries, given_up_at, attempts)
			SELECT u.company_id, u.id, u.at, u.phone_number, u.client_reference, u.data,
				CASE u.state WHEN 0 THEN now() + u.delay * interval '1 second' ELSE 'infinity' END, u.tries, CASE u.state WHEN 2 THEN now() END, u.attempt::json
			FROM first u WHERE u.state <> 1
		), kept AS (
			UPDATE webhook_undelivered u SET claimed_until = NULL,
				due = CASE r.state WHEN 0 THEN now() + r.delay * interval '1 second' WHEN 2 THEN 'infinity' END,
				tries = r.tries,
				given_up_at = CASE r.state WHEN 2 THEN now() END,
				attempts = `+withAttempt+`
			FROM r WHERE r.calls IS NULL AND r.state <> 1 AND u.company_id = r.company_id AND u.id = r.id AND u.claimed_until = r.claim
		), gone AS (
			DELETE FROM webhook_undelivered u USING r
			WHERE r.calls IS NULL AND r.state = 1 AND u.company_id = r.company_id AND u.id = r.id AND u.claimed_until = r.claim
			RETURNING u.company_id, u.id, u.at, u.phone_number, u.client_reference, u.data, `+withAttempt+`
		)
		INSERT INTO webhook_delivered (company_id, id, at, phone_number, client_reference, data, attempts)
		SELECT * FROM gone
		UNION ALL SELECT company_id, id, at, phone_number, client_reference, data, attempt::json FROM first WHERE state = 1`,
		companies, ids, claims, states, tries, delays, attempts, calls, at, numbers, references, data, partial, complete, again)
	if err != nil {
		return fmt.Errorf("storing %d webhook results: %w", n, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, n := range first {
		if d.firstCalls[id] -= n; d.firstCalls[id] <= 0 {
			delete(d.firstCalls, id)
		}
	}
	return nil
}

// withAttempt appends r's attempt, if any, to those of u.
const withAttempt = `coalesce((u.attempts::jsonb || r.attempt::jsonb)::json, r.attempt::json, u.attempts)`

// forget keeps store from deleting the rows of webhook_first_calls whose results are lost: after
// their end another process makes the calls.
func (d *deliverer) forget(batch []result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range batch {
		delete(d.firstCalls, batch[i].calls)
	}
}
