package webhooks

import (
	"cmp"
	"context"
	"slices"
	"time"

	"intumwa/internal/postgres"
)

const (
	recordBatch = 1000
	// Results are collected for recordLinger: nothing waits for them, and a transaction costs more than a row.
	recordLinger   = 100 * time.Millisecond
	recordPause    = 100 * time.Millisecond // after a failed statement, doubling
	maxRecordPause = 2 * time.Second        // the longest

	// mostWait is how long the result of a first call waits for the others of its transaction.
	mostWait = time.Second
)

// record stores results in batches until the channel is closed. While PostgreSQL is down it retries the same batch, and
// the full channel blocks further calls. When ctx ends it gives up, and the deliveries are repeated.
//
// The results of one transaction's first calls are stored together: only then is each delivery written once. But none
// waits for longer than mostWait.
func (d *deliverer) record(ctx context.Context) {
	var batch []outcome
	var waiting []*firstCalls // with some results
	tick := time.NewTicker(recordLinger)
	defer tick.Stop()
	for n, more := 0, true; more; {
		var r outcome
		select {
		case r, more = <-d.outcomes:
			n++
		case <-tick.C:
			n = recordBatch
		}
		if c := r.calls; c != nil && c.stored {
			r.claim, r.calls = c.ends, nil
		}
		switch {
		case r.company == 0: // no result came
		case r.calls == nil:
			batch = append(batch, r)
		case r.calls.add(r):
			waiting = append(waiting, r.calls)
		}
		if more && n < recordBatch {
			continue
		}
		waiting = slices.DeleteFunc(waiting, func(c *firstCalls) bool {
			if !more || c.ended == len(c.outcomes) || time.Since(c.since) > mostWait {
				batch, c.stored = append(batch, c.outcomes...), true
			}
			return c.stored
		})
		if len(batch) > 0 {
			d.storeUntilDone(ctx, batch)
		}
		batch, n = batch[:0], 0
		tick.Reset(recordLinger)
	}
}

func (d *deliverer) storeUntilDone(ctx context.Context, batch []outcome) {
	// Every process locks rows in this order, so there are no deadlocks.
	slices.SortStableFunc(batch, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(a.company, b.company), cmp.Compare(a.id, b.id))
	})
	pause := recordPause
	for first := true; ; first = false {
		err := postgres.Retry(ctx, func() error { return d.store(ctx, batch) })
		switch {
		case err == nil:
			if !first {
				d.log.Info("webhook results are stored again", "event", "webhook_results_stored")
			}
			if err := d.noteHealth(ctx, batch); err != nil {
				// a later result stores it
				d.log.Warn("state of webhook endpoints could not be stored", "event", "endpoint_state_not_stored", "error", err)
			}
			return
		case ctx.Err() != nil, postgres.Refused(err):
			d.log.Error("webhook results are lost; their deliveries will be repeated when their claims end", "event",
				"webhook_results_lost", "count", len(batch), "error", err)
			return
		case first:
			d.log.Error("webhook results cannot be stored; trying again", "event", "webhook_results_not_stored", "count",
				len(batch), "error", err)
		}
		wait(ctx, pause)
		pause = min(2*pause, maxRecordPause)
	}
}
