package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

const (
	recordBatch = 1000
	// Results are collected for recordLinger: nobody waits for them, and a transaction
	// costs more than a row.
	recordLinger   = 20 * time.Millisecond
	recordPause    = 100 * time.Millisecond // after a failed statement, doubling
	maxRecordPause = 2 * time.Second        // the longest
	refusedPause   = time.Minute            // before a delivery is repeated whose result the database refuses
)

// result is a finished attempt that is not stored yet.
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
		stored, epoch := false, d.epoch.Load() // before the term, which changes with it
		batch = d.currentTerm(batch)
		err := postgres.Retry(ctx, func() (err error) {
			stored, err = d.store(ctx, epoch, batch, failures > 0)
			return err
		})
		switch {
		case err == nil && !stored && d.leasedAgain(epoch):
			continue // with the new epoch
		case err == nil && !stored:
			d.log.Warn("webhook results are not stored: another process delivers", "count", len(batch))
			return
		case err == nil:
			if failures > 0 {
				d.log.Info("webhook results are stored again")
			}
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
		case postgres.Refused(err):
			d.log.Error("a webhook result cannot be stored; its delivery will be repeated", "delivery", batch[0].id, "error", err)
			d.retryLater(batch[0])
			return
		case failures == 0:
			d.log.Error("webhook results cannot be stored; trying again", "count", len(batch), "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, maxRecordPause)
	}
}

// leasedAgain reports whether this process has begun another lease since the one of an
// epoch: then it was its own epoch that refused a result. It waits for a lease that begins.
func (d *deliverer) leasedAgain(epoch int64) bool {
	d.leasing.Lock()
	defer d.leasing.Unlock()
	return d.epoch.Load() != epoch
}

// currentTerm returns the results of the current term: another process has taken over
// the deliveries of earlier terms.
func (d *deliverer) currentTerm(batch []result) []result {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(batch, func(r result) bool { return r.term != d.term })
}

// settle removes deliveries whose results are stored from memory.
func (d *deliverer) settle(ctx context.Context, batch []result) {
	d.mu.Lock()
	for i := range batch {
		r := &batch[i]
		if r.term != d.term {
			continue
		}
		if r.undelivered {
			d.workers[r.endpoint.company].settle(r.id)
		} else {
			d.arrivals.finish(r.seq)
		}
		if due := r.ended.Add(r.delay); r.state == pending && due.Before(d.nextDue) {
			d.nextDue = due
			d.wakeUp()
		}
	}
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

// affectingHealth returns the results of endpoints that fail or have failed; the others
// change nothing in their endpoints' rows.
func (d *deliverer) affectingHealth(batch []result) []result {
	failing := make(map[int64]bool)
	for i := range batch {
		r := &batch[i]
		if e := d.workers[r.endpoint.company]; r.state != delivered || e != nil && e.failing {
			failing[r.endpoint.company] = true
		}
	}
	if len(failing) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(batch), func(r result) bool { return !failing[r.endpoint.company] })
}

// retryLater parks a delivery, due after refusedPause.
func (d *deliverer) retryLater(r result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.term != d.term {
		return
	}
	if r.undelivered {
		d.workers[r.endpoint.company].settle(r.id)
		return
	}
	d.parked = append(d.parked, parked{r.endpoint.company, r.job, postgres.Now().Add(refusedPause)})
}

// store writes a batch in one transaction. If epoch is not the current owner's, stored
// is false and nothing is written. repeated means that an earlier try, whose outcome
// is unknown, may have stored the batch.
func (w *Webhooks) store(ctx context.Context, epoch int64, batch []result, repeated bool) (stored bool, err error) {
	if len(batch) == 0 {
		return true, nil
	}
	statements := &pgx.Batch{}
	queueAttempts(statements, epoch, batch, repeated)
	queueUndelivered(statements, epoch, batch)
	queueDelivered(statements, epoch, batch)
	statements.Queue(`SELECT EXISTS (SELECT FROM webhook_owner WHERE one AND epoch = $1)`, epoch).
		QueryRow(func(row pgx.Row) error { return row.Scan(&stored) })
	if err := w.pool.SendBatch(ctx, statements).Close(); err != nil {
		return false, fmt.Errorf("storing %d webhook results: %w", len(batch), err)
	}
	return stored, nil
}

func queueAttempts(b *pgx.Batch, epoch int64, batch []result, repeated bool) {
	n := len(batch)
	seqs, at, took, status := make([]int64, n), make([]time.Time, n), make([]int32, n), make([]int16, n)
	results, errs, excerpts := make([]string, n), make([]string, n), make([]string, n)
	for i := range batch {
		a := &batch[i].attempt
		seqs[i], at[i], took[i], status[i] = batch[i].seq, a.At, int32(a.DurationMS), int16(a.Status)
		results[i], errs[i], excerpts[i] = a.Result, a.Error, a.Excerpt
	}
	statement := `
		INSERT INTO webhook_attempts (seq, at, ms, status, result, error, excerpt)
		SELECT r.seq, r.at, r.ms, r.status, r.result, nullif(r.error, ''), nullif(r.excerpt, '')
		FROM webhook_owner o CROSS JOIN unnest($2::bigint[], $3::timestamptz[], $4::integer[], $5::smallint[], $6::text[], $7::text[], $8::text[])
			AS r(seq, at, ms, status, result, error, excerpt)
		WHERE o.one AND o.epoch = $1`
	if repeated {
		statement += ` AND NOT EXISTS (SELECT FROM webhook_attempts a WHERE a.seq = r.seq AND a.at = r.at)`
	}
	b.Queue(statement, epoch, seqs, at, took, status, results, errs, excerpts)
}

// queueUndelivered stores when failed deliveries are due again, or that they were given
// up.
func queueUndelivered(b *pgx.Batch, epoch int64, batch []result) {
	var companies, ids []int64
	var tries []int16
	var delays []float64
	var final []bool
	for i := range batch {
		if r := &batch[i]; r.state != delivered {
			companies, ids, tries = append(companies, r.endpoint.company), append(ids, r.id), append(tries, int16(r.tries+1))
			delays, final = append(delays, (r.delay-time.Since(r.ended)).Seconds()), append(final, r.state == exhausted)
		}
	}
	if len(ids) == 0 {
		return
	}
	b.Queue(`
		INSERT INTO webhook_undelivered (company_id, id, due, tries, given_up_at)
		SELECT r.company_id, r.id, CASE WHEN r.final THEN 'infinity' ELSE now() + r.delay * interval '1 second' END,
			r.tries, CASE WHEN r.final THEN now() END
		FROM webhook_owner o CROSS JOIN unnest($2::bigint[], $3::bigint[], $4::smallint[], $5::float8[], $6::boolean[])
			AS r(company_id, id, tries, delay, final)
		WHERE o.one AND o.epoch = $1
			AND EXISTS (SELECT FROM webhook_deliveries d WHERE d.company_id = r.company_id AND d.id = r.id)
		ON CONFLICT (company_id, id) DO UPDATE SET due = excluded.due, tries = excluded.tries, given_up_at = excluded.given_up_at`,
		epoch, companies, ids, tries, delays, final)
}

// queueDelivered deletes the rows of undelivered deliveries that succeeded.
func queueDelivered(b *pgx.Batch, epoch int64, batch []result) {
	var companies, ids []int64
	for i := range batch {
		if r := &batch[i]; r.state == delivered && r.undelivered {
			companies, ids = append(companies, r.endpoint.company), append(ids, r.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	b.Queue(`
		DELETE FROM webhook_undelivered u USING unnest($2::bigint[], $3::bigint[]) AS r(company_id, id)
		WHERE u.company_id = r.company_id AND u.id = r.id
			AND EXISTS (SELECT FROM webhook_owner WHERE one AND epoch = $1)`, epoch, companies, ids)
}
