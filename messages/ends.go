package messages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages/receipts"
)

// Refused is a segment recorded as unanswered that its carrier refused late and temporarily: it does not have it.
type Refused struct {
	MessageID int64
	Segment   int // from 1
	Delay     time.Duration
}

// PutBack deletes the unanswered copies of segments that a carrier refused late, and puts their messages on the outbox
// again if they are pending, valid and not on it. A message without such a copy stays: it was put back before. Each
// keeps its own expiry, and its claims continue from its last epoch. The caller holds the carrier's lock.
func (s *Store) PutBack(ctx context.Context, tx pgx.Tx, carrier string, refused []Refused) error {
	if len(refused) == 0 {
		return nil
	}
	n := len(refused)
	ids, numbers, delays := make([]int64, n), make([]int16, n), make([]float64, n)
	for i, r := range refused {
		ids[i], numbers[i], delays[i] = r.MessageID, int16(r.Segment), r.Delay.Seconds()
	}
	if _, err := tx.Exec(ctx, `WITH gone AS (`+receipts.NotTaken("$1::bigint[]", "$5::smallint[]", "$6")+`), input AS (
			SELECT id, max(delay) AS delay FROM unnest($1::bigint[], $2::float8[]) u(id, delay) WHERE id IN (SELECT message_id FROM gone) GROUP BY id
		)
		INSERT INTO outbox (message_id, company_id, carrier, lane, attempts, due_at, expires_at, pushed_at, epoch, since)
		SELECT m.id, m.company_id, m.carrier, CASE WHEN m.batch_id IS NULL THEN $3::smallint ELSE $4::smallint END, 1,
			now() + make_interval(secs => i.delay), h.expires_at, NULL, h.epoch, m.send_at
		FROM input i JOIN messages m ON m.id = i.id JOIN held h ON h.message_id = i.id
		WHERE m.status = 0 AND h.expires_at > now()
		ORDER BY m.id ON CONFLICT DO NOTHING`,
		ids, delays, int16(LaneSingle), int16(LaneBatch), numbers, carrier); err != nil {
		return fmt.Errorf("putting %d messages back: %w", n, err)
	}
	return nil
}

// goneColumns are the columns of deleted outbox rows o for goneInDoubt and keepUnanswered.
const goneColumns = `o.message_id, o.carrier, o.epoch, o.expires_at, o.in_doubt`

// goneInDoubt records which of the outbox rows in gone were in doubt: they get no second carrier.
var goneInDoubt = keepFromSecond("gone", "carrier")

// keepUnanswered does the same, and records what PutBack needs of the rows.
var keepUnanswered = `, doubtful AS (` + goneInDoubt + `)
	INSERT INTO held (message_id, epoch, expires_at) SELECT message_id, epoch, expires_at FROM gone
	ON CONFLICT (message_id) DO UPDATE SET epoch = greatest(held.epoch, excluded.epoch), expires_at = excluded.expires_at`

// Ends are the results of attempts on messages that a dispatcher had claimed. Later claims of the same messages, also
// by this dispatcher, are not affected.
//
// No dispatcher works on a pending message without a row in the outbox: everything that a carrier may have of it is
// recorded, as segments or, if the row was in doubt, in sent_on ([Store.KeepFromSecond]).
type Ends struct {
	Dispatcher int64
	Carried    []Claim // a carrier has all their segments
	Unanswered []Claim // a carrier may have them: they leave the outbox, possibly until PutBack
	Retries    []Retry
	Done       []int64 // they need not be sent: their unclaimed rows are deleted; an attempt under way ends later
}

// Conditions on a row o of outbox. $2 is the dispatcher of Ends. A row that is in doubt and was claimed since stays for
// the next claim, which reports the doubt (Claimed.InDoubt).
const (
	// endedRow is the row of claim u by dispatcher $2, without a later claim.
	endedRow = `o.message_id = u.id AND (o.claimed_by = $2 AND o.epoch = u.epoch OR o.claimed_by IS NULL AND (o.epoch = u.epoch OR NOT o.in_doubt))`
	// freeRow is not claimed and not in doubt.
	freeRow = `o.claimed_by IS NULL AND NOT o.in_doubt`
)

// Retry is a message to be tried again after Delay.
type Retry struct {
	Claim
	Delay  time.Duration // 0: it stays due as before
	Counts bool          // whether this attempt counts
}

// queue adds the statements that end or postpone attempts to a pipeline.
func (e Ends) queue(b *pgx.Batch) {
	if len(e.Carried) > 0 {
		ids, epochs := inOrder(e.Carried)
		b.Queue(`WITH gone AS (
				DELETE FROM outbox o USING (SELECT unnest($1::bigint[]) AS id, unnest($3::int[]) AS epoch) u WHERE `+endedRow+` RETURNING `+goneColumns+`
			) `+goneInDoubt, ids, e.Dispatcher, epochs)
	}
	if len(e.Unanswered) > 0 {
		ids, epochs := inOrder(e.Unanswered)
		b.Queue(`WITH gone AS (
				DELETE FROM outbox o USING (SELECT unnest($1::bigint[]) AS id, unnest($3::int[]) AS epoch) u WHERE `+endedRow+` RETURNING `+goneColumns+`
			)`+keepUnanswered, ids, e.Dispatcher, epochs)
	}
	e.queueRetries(b)
	if len(e.Done) > 0 { // some may have been freed meanwhile
		slices.Sort(e.Done)
		b.Queue(`DELETE FROM outbox o WHERE message_id = ANY($1) AND `+freeRow, e.Done)
	}
}

func (e Ends) queueRetries(b *pgx.Batch) {
	if len(e.Retries) == 0 {
		return
	}
	slices.SortFunc(e.Retries, func(a, b Retry) int { return cmp.Compare(a.MessageID, b.MessageID) })
	n := len(e.Retries)
	ids, epochs, delays, free := make([]int64, n), make([]int32, n), make([]float64, n), make([]int32, n)
	for i, r := range e.Retries {
		ids[i], epochs[i], delays[i] = r.MessageID, int32(r.Epoch), r.Delay.Seconds()
		if !r.Counts {
			free[i] = 1
		}
	}
	b.Queue(`UPDATE outbox o SET claimed_by = NULL, pushed_at = NULL,
			due_at = CASE WHEN u.delay > 0 THEN now() + make_interval(secs => u.delay) ELSE o.due_at END, attempts = greatest(o.attempts - u.free, 0)
		FROM unnest($2::bigint[], $3::int[], $4::float8[], $5::int[]) u(id, epoch, delay, free)
		WHERE o.message_id = u.id AND o.epoch = u.epoch AND o.claimed_by = $1`, e.Dispatcher, ids, epochs, delays, free)
}

// inOrder returns claims by column, in the order of locking.
func inOrder(claims []Claim) (ids []int64, epochs []int32) {
	slices.SortFunc(claims, func(a, b Claim) int { return cmp.Compare(a.MessageID, b.MessageID) })
	ids, epochs = make([]int64, len(claims)), make([]int32, len(claims))
	for i, c := range claims {
		ids[i], epochs[i] = c.MessageID, int32(c.Epoch)
	}
	return ids, epochs
}
