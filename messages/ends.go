package messages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/receipts"
)

// Refused is a segment recorded as unanswered that its carrier refused for now
// after all: it does not have it.
type Refused struct {
	MessageID int64
	Segment   int // from 1
	Delay     time.Duration
}

// epochUnknown is where the claims of a message are counted on that was held by a
// release which did not write down how many it had: far above any count.
const epochUnknown = 1 << 30

// PutBack puts pending messages on the outbox again whose segments were refused
// late, if they are within their validity and not on it already. Each has the
// rest of its own validity, and its claims are counted on from the last. validity
// is only for those that were held by a release which did not write that down.
func (s *Store) PutBack(ctx context.Context, tx pgx.Tx, refused []Refused, validity time.Duration) error {
	if len(refused) == 0 {
		return nil
	}
	n := len(refused)
	ids, numbers, delays := make([]int64, n), make([]int16, n), make([]float64, n)
	for i, r := range refused {
		ids[i], numbers[i], delays[i] = r.MessageID, int16(r.Segment), r.Delay.Seconds()
	}
	b := &pgx.Batch{}
	receipts.QueueNotTaken(b, ids, numbers)
	b.Queue(`WITH input AS (
			SELECT id, max(delay) AS delay FROM unnest($1::bigint[], $2::float8[]) u(id, delay) GROUP BY id
		)
		INSERT INTO outbox (message_id, company_id, carrier, lane, attempts, due_at, expires_at, pushed_at, epoch, since)
		SELECT m.id, m.company_id, m.carrier, CASE WHEN m.batch_id IS NULL THEN $4::smallint ELSE $5::smallint END, 1,
			now() + make_interval(secs => i.delay), coalesce(b.expires_at, m.expire_at, greatest(m.created_at, m.send_at) + $3::interval), NULL, coalesce(b.epoch, $6), m.send_at
		FROM input i JOIN messages m ON m.id = i.id LEFT JOIN held b ON b.message_id = i.id
		WHERE m.status = 0 AND coalesce(b.expires_at, m.expire_at, greatest(m.created_at, m.send_at) + $3::interval) > now()
		ORDER BY m.id ON CONFLICT DO NOTHING`, ids, delays, validity, int16(LaneSingle), int16(LaneBatch), epochUnknown)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("putting %d messages back: %w", n, err)
	}
	return nil
}

// holdGone writes down what PutBack needs of the outbox rows in gone.
const holdGone = `INSERT INTO held (message_id, epoch, expires_at) SELECT message_id, epoch, expires_at FROM gone
	ON CONFLICT (message_id) DO UPDATE SET epoch = greatest(held.epoch, excluded.epoch), expires_at = excluded.expires_at`

// Ends says how the attempts of messages go on that a dispatcher had claimed.
type Ends struct {
	Dispatcher int64
	Carried    []int64 // a carrier has all their segments
	Held       []int64 // a carrier may have them: they are not to be sent again unless they are put back (PutBack)
	Retries    []Retry
}

// Retry is a message to be tried again after Delay.
type Retry struct {
	Claim
	Delay  time.Duration // 0: it is due as long as it was
	Counts bool          // whether this attempt counts
}

// queue adds the statements that end attempts, or put them off, to a pipeline.
func (e Ends) queue(b *pgx.Batch) {
	if len(e.Carried) > 0 {
		slices.Sort(e.Carried) // here and below the order of locking
		b.Queue(`DELETE FROM outbox WHERE message_id = ANY($1) AND (claimed_by = $2 OR claimed_by IS NULL)`, e.Carried, e.Dispatcher)
	}
	if len(e.Held) > 0 {
		b.Queue(`WITH gone AS (
				DELETE FROM outbox WHERE message_id = ANY($1) AND (claimed_by = $2 OR claimed_by IS NULL) RETURNING message_id, epoch, expires_at
			) `+holdGone, e.Held, e.Dispatcher)
	}
	if len(e.Retries) == 0 {
		return
	}
	slices.SortFunc(e.Retries, func(a, b Retry) int { return cmp.Compare(a.MessageID, b.MessageID) })
	n := len(e.Retries)
	ids, epochs, begun, delays, free := make([]int64, n), make([]int32, n), make([]bool, n), make([]float64, n), make([]int32, n)
	for i, r := range e.Retries {
		ids[i], epochs[i], begun[i], delays[i] = r.MessageID, int32(r.Epoch), r.Begun, r.Delay.Seconds()
		if !r.Counts {
			free[i] = 1
		}
	}
	b.Queue(`UPDATE outbox o SET claimed_by = NULL, pushed_at = NULL, begun = u.begun,
			due_at = CASE WHEN u.delay > 0 THEN now() + make_interval(secs => u.delay) ELSE o.due_at END, attempts = greatest(o.attempts - u.free, 0)
		FROM unnest($2::bigint[], $3::int[], $4::float8[], $5::int[], $6::boolean[]) u(id, epoch, delay, free, begun)
		WHERE o.message_id = u.id AND o.epoch = u.epoch AND o.claimed_by = $1`, e.Dispatcher, ids, epochs, delays, free, begun)
}
