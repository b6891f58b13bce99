package receipts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Lock makes the caller's transaction the only one that records segments or receipts of the carrier. A receipt and its
// response may be recorded in two transactions (or processes) at once; without the lock each could miss the other.
//
// The server ends such a transaction after three idle seconds: a process that sleeps, or whose machine is gone, must
// not block the carrier.
func (m *Matcher) Lock(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, lockCarrier, m.carrier); err != nil {
		return fmt.Errorf("locking carrier %s: %w", m.carrier, err)
	}
	return nil
}

const lockCarrier = `SELECT set_config('idle_in_transaction_session_timeout', '3000', true),
	pg_advisory_xact_lock(hashtextextended('intumwa carrier ' || $1, 0))`

// Recorded is the result of one Record.
type Recorded struct {
	Settled  []SegmentState // all segments that became final
	Early    int            // of these, by a receipt before the response
	Outcomes []Outcome      // of the receipts, in their order
	Whose    []int64        // of each Matched receipt: its message
}

// Record takes the carrier's lock ([Matcher.Lock]) and records segments that the carrier accepted, or may have, then
// receipts in the given order. Of a segment's final states the first wins (rule choices 5.3). Settled includes segments
// that are final at once: confirmed by the acceptance, or by an earlier receipt. Of the receipts without a segment,
// room are stored; the others are Throttled. It costs one round trip, which reads; its writes go out with the next
// statement ([postgres.Later]).
func (m *Matcher) Record(ctx context.Context, tx pgx.Tx, segments []Segment, receipts []Receipt, room int) (Recorded, error) {
	w := m.newMatching(segments, receipts, room)
	b := &pgx.Batch{}
	b.Queue(lockCarrier, m.carrier)
	w.load(b)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return Recorded{}, fmt.Errorf("%s: %w", w.doing(), err)
	}
	w.match()
	b = &pgx.Batch{}
	w.write(b)
	return w.recorded(), postgres.Later(ctx, tx, w.doing(), b)
}

// recorded returns a matching's result.
func (w *matching) recorded() Recorded {
	r := Recorded{Settled: make([]SegmentState, 0, len(w.settled)), Early: w.byEarly, Outcomes: w.outcomes, Whose: make([]int64, len(w.outcomes))}
	for _, row := range w.settled {
		r.Settled = append(r.Settled, row.SegmentState)
	}
	for i, outcome := range w.outcomes {
		if outcome == Matched {
			r.Whose[i] = w.named[i].MessageID
		}
	}
	return r
}
