package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

const (
	recordBatch = 1000
	recordPause = 100 * time.Millisecond // after a failed statement, doubling
	recordRest  = 2 * time.Second        // at most
)

// result is a finished attempt on its way to Postgres.
type result struct {
	id       int64
	endpoint callee
	tries    int // before this attempt
	state    state
	delay    time.Duration // until the next attempt, when still pending
	attempt  Attempt
}

// record stores results until the channel is closed: what arrives while one
// statement runs goes into the next. While Postgres is away it tries the same
// batch again; the full channel then holds up the calls. It gives up when ctx
// ends; the leases see to the rest.
func (w *Webhooks) record(ctx context.Context, results <-chan result) {
	batch := make([]result, 0, recordBatch)
	for r := range results {
		batch = append(batch[:0], r)
	gather:
		for len(batch) < recordBatch {
			select {
			case r, open := <-results:
				if !open {
					break gather
				}
				batch = append(batch, r)
			default:
				break gather
			}
		}
		// In the order in which every process locks them, so that two never wait
		// for each other in a ring.
		slices.SortStableFunc(batch, func(a, b result) int { return cmp.Compare(a.id, b.id) })
		w.storeUntilDone(ctx, batch)
	}
}

func (w *Webhooks) storeUntilDone(ctx context.Context, batch []result) {
	pause := recordPause
	for failures := 0; ; failures++ {
		err := postgres.Retry(ctx, func() error { return w.store(ctx, batch) })
		switch {
		case err == nil:
			if failures > 0 {
				w.log.Info("webhook results are stored again")
			}
			return
		case ctx.Err() != nil:
			w.log.Error("webhook results are lost; their deliveries will be repeated", "count", len(batch), "error", err)
			return
		case postgres.Refused(err) && len(batch) > 1:
			for i := range batch { // one that the database will never take is not the others' trouble
				w.storeUntilDone(ctx, batch[i:i+1])
			}
			return
		case postgres.Refused(err):
			w.log.Error("a webhook result cannot be stored; its delivery will be repeated", "delivery", batch[0].id, "error", err)
			return
		case failures == 0:
			w.log.Error("webhook results cannot be stored; trying again", "count", len(batch), "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, recordRest)
	}
}

// store writes a batch. A result counts when nobody finished an attempt of the
// delivery since it was claimed, or when it is a success; the attempt is kept
// in any case.
func (w *Webhooks) store(ctx context.Context, batch []result) error {
	n := len(batch)
	ids, tries, states := make([]int64, n), make([]int16, n), make([]int16, n)
	delays, attempts := make([]float64, n), make([][]byte, n)
	for i := range batch {
		r := &batch[i]
		encoded, err := json.Marshal(&r.attempt)
		if err != nil {
			return fmt.Errorf("encoding an attempt: %w", err)
		}
		ids[i], tries[i], states[i] = r.id, int16(r.tries), int16(r.state)
		delays[i], attempts[i] = r.delay.Seconds(), encoded
	}
	// state + 0: after an ANALYZE that met few pending deliveries, the planner
	// would else walk the index of the pending ones, once for each result.
	rows, err := w.pool.Query(ctx, `
		UPDATE webhook_deliveries d SET
			attempts = d.attempts || r.attempt,
			state = r.state,
			tries = r.tries + 1,
			next_at = now() + r.delay * interval '1 second',
			leased_until = '-infinity',
			finished_at = CASE WHEN r.state <> 0 THEN now() END
		FROM unnest($1::bigint[], $2::smallint[], $3::smallint[], $4::float8[], $5::jsonb[])
			AS r(id, tries, state, delay, attempt)
		WHERE d.id = r.id AND d.state + 0 = 0 AND (d.tries = r.tries OR r.state = 1)
		RETURNING d.id`, ids, tries, states, delays, attempts)
	if err != nil {
		return fmt.Errorf("storing %d webhook results: %w", n, err)
	}
	counted, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("storing %d webhook results: %w", n, err)
	}
	if err := w.noteHealth(ctx, batch); err != nil {
		w.log.Warn("how endpoints are was not noted", "error", err) // the next result says it again
	}
	if len(counted) == n {
		return nil
	}
	return w.storeLate(ctx, batch, attempts, counted)
}

// storeLate keeps the attempts of those results that did not count.
func (w *Webhooks) storeLate(ctx context.Context, batch []result, attempts [][]byte, counted []int64) error {
	done := make(map[int64]bool, len(counted))
	for _, id := range counted {
		done[id] = true
	}
	var ids []int64
	var late [][]byte
	for i := range batch {
		if !done[batch[i].id] {
			ids, late = append(ids, batch[i].id), append(late, attempts[i])
		}
	}
	_, err := w.pool.Exec(ctx, `
		UPDATE webhook_deliveries d SET attempts = d.attempts || r.attempt
		FROM unnest($1::bigint[], $2::jsonb[]) AS r(id, attempt)
		WHERE d.id = r.id`, ids, late)
	if err != nil {
		return fmt.Errorf("storing %d late webhook attempts: %w", len(ids), err)
	}
	return nil
}
