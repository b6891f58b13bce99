package receipts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lock makes the caller's transaction the only one that records segments
// or receipts of the carrier, until it ends. A receipt and the response that it
// belongs to may be worked on in two transactions (or two processes) at once;
// without the lock each could miss what the other is just writing.
//
// A process that sleeps, or whose machine is gone, in the middle of such a
// transaction must not keep the carrier from the others: the server ends a
// transaction that is left idle for three seconds.
func (m *Matcher) Lock(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, lockCarrier, m.carrier); err != nil {
		return fmt.Errorf("locking carrier %s: %w", m.carrier, err)
	}
	return nil
}

const lockCarrier = `SELECT set_config('idle_in_transaction_session_timeout', '3000', true),
	pg_advisory_xact_lock(hashtextextended('intumwa carrier ' || $1, 0))`

// Recorded is what came of the segments and receipts of one Record.
type Recorded struct {
	Settled  []SegmentState // all that became final
	Early    int            // of these, by a receipt that was ahead of the response
	Outcomes []Outcome      // of the receipts, in their order
	Whose    []int64        // of the receipts that are Matched: their messages

	votes  []vote
	parked bool
}

// Record takes the carrier's lock ([Matcher.Lock]) and records segments that it
// has accepted, or may have, then receipts in the order given. Of a
// segment's final states the first wins (rule choices 5.3). Settled are also
// segments that are final at once: confirmed by the acceptance itself, or by a
// receipt that came before the response. Of the receipts that no segment is found
// for, room are kept; the others are Throttled. Commonly it costs one round trip.
func (m *Matcher) Record(ctx context.Context, tx pgx.Tx, segments []Segment, receipts []Receipt, room int) (Recorded, error) {
	b := &pgx.Batch{}
	b.Queue(lockCarrier, m.carrier)
	written := m.newRecording(segments)
	written.queue(b)
	reports := m.newReports(receipts, room)
	reports.byID.queue(b, m.carrier)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return Recorded{}, fmt.Errorf("recording %d segments and %d receipts of carrier %s: %w", len(segments), len(receipts), m.carrier, err)
	}
	if err := written.otherwise(ctx, tx); err != nil {
		return Recorded{}, err
	}
	if err := reports.finish(ctx, tx, m.carrier); err != nil {
		return Recorded{}, err
	}
	found := reports.found()
	for _, f := range found {
		written.settled = append(written.settled, f.SegmentState)
	}
	return Recorded{
		Settled:  written.settled,
		Early:    written.early,
		Outcomes: reports.outcomes,
		Whose:    reports.whose,
		votes:    slices.Concat(reports.votes(found), written.votes),
		parked:   reports.parked(),
	}, nil
}

// Committed takes in what a Record has shown of the links' formats of ids, once its
// transaction is committed. It returns those that became known by it.
func (m *Matcher) Committed(r Recorded) []Learnt {
	if r.parked {
		m.mu.Lock()
		m.parked = time.Now()
		m.mu.Unlock()
	}
	return m.learn(r.votes)
}
