package webhooks

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

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

// result is a finished attempt that is not stored yet. Without an attempt the delivery is released: pending, and due at
// once.
type result struct {
	job
	state   state
	delay   time.Duration // from the end of the attempt to the next one, while pending
	ended   time.Time
	attempt Attempt
}

func (r *result) called() bool { return r.attempt.Result != "" }

// due is when the next attempt is due: infinity after the last one, NULL after a success.
func (r *result) due() pgtype.Timestamptz {
	switch {
	case r.state == delivered:
		return pgtype.Timestamptz{}
	case r.ended.IsZero(): // it is being called
		return pgtype.Timestamptz{Time: r.at, Valid: true}
	case r.state == exhausted:
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	}
	return pgtype.Timestamptz{Time: postgres.Moment(r.ended.Add(r.delay)), Valid: true}
}

// claimedUntil is the claim under which the attempt was made. Of a first call it is the claim that the delivery's row
// gets: none, or until the calls end if it is still being called.
func (r *result) claimedUntil() *time.Time {
	switch {
	case r.calls == nil:
		return &r.claim
	case r.ended.IsZero():
		return &r.calls.ends
	}
	return nil
}

// state of a delivery after an attempt.
type state int

const (
	pending state = iota
	delivered
	exhausted
)

// schedule lists the delays between a failure and the next attempt. rule api 6
type schedule []time.Duration

// after returns a delivery's state after attempt number tries (from 1) of its round, and the delay before the next
// attempt.
func (s schedule) after(tries int, success bool) (state, time.Duration) {
	switch {
	case success:
		return delivered, 0
	case tries > len(s):
		return exhausted, 0
	}
	return pending, s[tries-1]
}

// firstCalls are the deliveries of one transaction that this process calls without a claim: a row of
// webhook_first_calls.
type firstCalls struct {
	id      callsID
	ends    time.Time // from then on any process may end the row
	results []result  // one per delivery; those without an end are being called
	ended   int       // results that have ended
	since   time.Time // when the first of them came
	stored  bool      // the row has ended: each delivery has its own
}

// callsID is a ULID.
type callsID = [16]byte

// add adds a result and reports whether it is the first one.
func (c *firstCalls) add(r result) bool {
	c.results[r.place] = r
	if c.ended++; c.ended == 1 {
		c.since = time.Now()
	}
	return c.ended == 1
}

// record stores results in batches until the channel is closed. While PostgreSQL is down it retries the same batch, and
// the full channel blocks further calls. When ctx ends it gives up, and the deliveries are repeated.
//
// The results of one transaction's first calls are stored together: only then is each delivery written once. But none
// waits for longer than mostWait.
func (d *deliverer) record(ctx context.Context) {
	var batch []result
	var waiting []*firstCalls // with some results
	tick := time.NewTicker(recordLinger)
	defer tick.Stop()
	for n, more := 0, true; more; {
		var r result
		select {
		case r, more = <-d.results:
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
			if !more || c.ended == len(c.results) || time.Since(c.since) > mostWait {
				batch, c.stored = append(batch, c.results...), true
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

func (d *deliverer) storeUntilDone(ctx context.Context, batch []result) {
	// Every process locks rows in this order, so there are no deadlocks.
	slices.SortStableFunc(batch, func(a, b result) int {
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
				d.log.Warn("state of webhook endpoints could not be stored", "event", "endpoint_state_not_stored", "error", err) // a later result stores it
			}
			return
		case ctx.Err() != nil, postgres.Refused(err):
			d.log.Error("webhook results are lost; their deliveries will be repeated when their claims end", "event", "webhook_results_lost", "count", len(batch), "error", err)
			return
		case first:
			d.log.Error("webhook results cannot be stored; trying again", "event", "webhook_results_not_stored", "count", len(batch), "error", err)
		}
		wait(ctx, pause)
		pause = min(2*pause, maxRecordPause)
	}
}
