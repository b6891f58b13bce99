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
	// Results are collected for recordLinger: nobody waits for them, and a transaction
	// costs more than a row.
	recordLinger   = 20 * time.Millisecond
	recordPause    = 100 * time.Millisecond // after a failed statement, doubling
	maxRecordPause = 2 * time.Second        // the longest
)

// result is a finished attempt that is not stored yet, or a claim that ends without one.
type result struct {
	job
	endpoint callee
	state    state
	delay    time.Duration // from its end to the next attempt, while pending
	ended    time.Time
	attempt  Attempt
}

// record stores results in batches until the channel is closed. While Postgres is away
// it tries the same batch again, and the full channel blocks further calls. It gives
// up when ctx ends; the deliveries are then repeated.
func (d *deliverer) record(ctx context.Context) {
	batch := make([]result, 0, recordBatch)
	linger := time.NewTimer(time.Hour)
	defer linger.Stop()
	for r := range d.results {
		batch = append(batch[:0], r)
		linger.Reset(recordLinger)
	gather:
		for len(batch) < recordBatch {
			select {
			case r, open := <-d.results:
				if !open {
					break gather
				}
				batch = append(batch, r)
			case <-linger.C:
				break gather
			}
		}
		// In the order in which every process locks rows, so that there are no deadlocks.
		slices.SortStableFunc(batch, func(a, b result) int {
			return cmp.Or(cmp.Compare(a.endpoint.company, b.endpoint.company), cmp.Compare(a.id, b.id))
		})
		d.storeUntilDone(ctx, batch)
	}
}

func (d *deliverer) storeUntilDone(ctx context.Context, batch []result) {
	pause := recordPause
	for failures := 0; ; failures++ {
		err := postgres.Retry(ctx, func() error { return d.store(ctx, batch) })
		switch {
		case err == nil:
			if failures > 0 {
				d.log.Info("webhook results are stored again")
			}
			d.unstored.Store(false)
			d.settle(ctx, batch)
			return
		case ctx.Err() != nil:
			d.log.Error("webhook results are lost; their deliveries will be repeated", "count", len(batch), "error", err)
			return
		case postgres.Refused(err) && len(batch) > 1:
			for i := range batch { // one by one: a result that the database refuses must not stop the others
				d.storeUntilDone(ctx, batch[i:i+1])
			}
			return
		case postgres.Refused(err): // the database answers
			d.unstored.Store(false)
			d.log.Error("a webhook result cannot be stored; its delivery will be repeated when its claim ends", "delivery", batch[0].id, "error", err)
			return
		case failures == 0:
			d.unstored.Store(true)
			d.log.Error("webhook results cannot be stored; trying again", "count", len(batch), "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, maxRecordPause)
	}
}

// settle notes what stored results say about their endpoints.
func (d *deliverer) settle(ctx context.Context, batch []result) {
	for i := range batch {
		if batch[i].state == returned {
			d.wake(batch[i].endpoint.company, want{again: true})
		}
	}
	d.mu.Lock()
	concerned := d.affectingHealth(batch)
	d.mu.Unlock()
	if len(concerned) == 0 {
		return
	}
	if err := d.noteHealth(ctx, concerned); err != nil {
		d.log.Warn("state of webhook endpoints could not be stored", "error", err) // the next result stores it again
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range concerned {
		r := &concerned[i]
		d.workers[r.endpoint.company].failing = r.state != delivered
	}
}

// affectingHealth returns the attempts at endpoints that fail or have failed; the others
// change nothing in their endpoints' rows.
func (d *deliverer) affectingHealth(batch []result) (concerned []result) {
	failing := make(map[int64]bool)
	for i := range batch {
		if r := &batch[i]; r.state != returned && (r.state != delivered || d.workers[r.endpoint.company].failing) {
			failing[r.endpoint.company] = true
		}
	}
	for i := range batch {
		if r := &batch[i]; r.state != returned && failing[r.endpoint.company] {
			concerned = append(concerned, *r)
		}
	}
	return concerned
}

// store writes a batch in one statement. A result whose claim is not held any more
// changes nothing: another process calls, or a call of this function whose answer was
// lost has stored it.
func (w *Webhooks) store(ctx context.Context, batch []result) error {
	n := len(batch)
	companies, ids, claims, states := make([]int64, n), make([]int64, n), make([]time.Time, n), make([]int16, n)
	tries, delays := make([]int16, n), make([]float64, n)
	seqs, at, took, status := make([]int64, n), make([]time.Time, n), make([]int32, n), make([]int16, n)
	results, errs, excerpts := make([]string, n), make([]string, n), make([]string, n)
	for i := range batch {
		r, a := &batch[i], &batch[i].attempt
		companies[i], ids[i], claims[i], states[i] = r.endpoint.company, r.id, r.claim, int16(r.state)
		tries[i], delays[i] = int16(r.tries+1), (r.delay - time.Since(r.ended)).Seconds()
		seqs[i], at[i], took[i], status[i] = r.seq, a.At, int32(a.DurationMS), int16(a.Status)
		results[i], errs[i], excerpts[i] = a.Result, a.Error, a.Excerpt
	}
	_, err := w.pool.Exec(ctx, `
		WITH r AS (
			SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::smallint[], $5::smallint[], $6::float8[],
				$7::bigint[], $8::timestamptz[], $9::integer[], $10::smallint[], $11::text[], $12::text[], $13::text[])
				AS r(company_id, id, claim, state, tries, delay, seq, at, ms, status, result, error, excerpt)
		), gone AS (
			DELETE FROM webhook_undelivered u USING r
			WHERE r.state = 1 AND u.company_id = r.company_id AND u.id = r.id AND u.claimed_until = r.claim
			RETURNING r.seq, r.at, r.ms, r.status, r.result, r.error, r.excerpt
		), kept AS (
			UPDATE webhook_undelivered u SET claimed_until = NULL,
				due = CASE r.state WHEN 0 THEN now() + r.delay * interval '1 second' WHEN 2 THEN 'infinity' ELSE u.due END,
				tries = CASE r.state WHEN 3 THEN u.tries ELSE r.tries END,
				given_up_at = CASE r.state WHEN 2 THEN now() END
			FROM r WHERE r.state <> 1 AND u.company_id = r.company_id AND u.id = r.id AND u.claimed_until = r.claim
			RETURNING r.seq, r.at, r.ms, r.status, r.result, r.error, r.excerpt, r.state
		)
		INSERT INTO webhook_attempts (seq, at, ms, status, result, error, excerpt)
		SELECT seq, at, ms, status, result, nullif(error, ''), nullif(excerpt, '') FROM (
			SELECT * FROM gone UNION ALL SELECT seq, at, ms, status, result, error, excerpt FROM kept WHERE state <> 3) a`,
		companies, ids, claims, states, tries, delays, seqs, at, took, status, results, errs, excerpts)
	if err != nil {
		return fmt.Errorf("storing %d webhook results: %w", n, err)
	}
	return nil
}
