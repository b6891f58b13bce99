package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/billing"
)

const (
	// recheckTimeout bounds the search for the outcome of a COMMIT without a response: a database may come back, and
	// clients wait for 503 meanwhile.
	recheckTimeout = 10 * time.Second
	// recheckGrace is how long the search may take when the process ends, or when little time is left to answer.
	recheckGrace = 2 * time.Second
)

// resolve finds out whether requests in doubt were committed; the error is nil if they were.
func (w *writer) resolve(ctx context.Context, requests []*request, doubt *inDoubt) error {
	limit := max(min(recheckTimeout, timeLeft(requests)), recheckGrace)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(recheckGrace, cancel) })()
	committed, err := w.tookEffect(limited, &doubt.written)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w; looking again: %w", ErrOutcomeUnknown, doubt, err)
	case !committed:
		return fmt.Errorf("%w: %w", ErrUnavailable, doubt)
	}
	for i := range doubt.receipts {
		r := doubt.requests[i]
		if doubt.receipts[i].Remaining, err = billing.New(w.pool).Remaining(limited, r.company, r.ref); err != nil {
			return fmt.Errorf("%w: %w; %w", ErrOutcomeUnknown, doubt, err)
		}
	}
	w.committed(&doubt.written)
	return nil
}

// tookEffect finds out whether a COMMIT without a response took effect. It waits until the server process that ran it
// has ended (its connection is closed, but it may still read what was sent), then looks for the ULIDs that it wrote. A
// process of another database, or one that began later, has the number by chance: after a failover, or a restart in a
// container.
func (w *writer) tookEffect(ctx context.Context, group *written) (bool, error) {
	var refs []ulid.ULID
	for _, r := range group.requests {
		refs = append(refs, r.messages[0].ULID) // another part of the campaign may have written the batch
	}
	if len(refs) == 0 { // nothing was written, and stored keys do not matter
		return true, nil
	}
	for {
		var runs bool
		err := w.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1::bigint
			AND datname = current_database()
			AND (backend_start > clock_timestamp() - $2::interval) IS NOT TRUE)`, group.backend,
			time.Since(group.began)-time.Second).Scan(&runs)
		if err == nil && !runs {
			var known map[ulid.ULID]int64
			if known, err = w.messages.Known(ctx, refs); err == nil {
				group.find(known)
				return len(known) > 0, nil
			}
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("the outcome of %d requests is unknown: %w", len(refs), errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// find sets the ids that were lost with the response, those of single messages. The dispatcher finds batches.
func (group *written) find(known map[ulid.ULID]int64) {
	for i, m := range group.messages {
		if group.ids[i] == 0 {
			group.ids[i] = known[m.ULID]
		}
	}
}
