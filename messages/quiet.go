package messages

import (
	"context"
	"fmt"
	"time"
)

// Quiet says whose batches are not sent at this moment, and until when.
type Quiet struct {
	Until     map[int64]time.Time // of companies that have quiet hours of their own; zero: they are not quiet
	Otherwise time.Time           // of all others; zero: they are not quiet
}

// Some reports whether anybody's batches are not sent.
func (q Quiet) Some() bool {
	for _, until := range q.Until {
		if !until.IsZero() {
			return true
		}
	}
	return !q.Otherwise.IsZero()
}

// args are the companies that have their own, in pairs with their ends, and the others' end; NULL: they are not quiet.
func (q Quiet) args() (companies []int64, until []*time.Time, otherwise *time.Time) {
	for company, end := range q.Until {
		companies, until = append(companies, company), append(until, orNull(end))
	}
	return companies, until, orNull(q.Otherwise)
}

// quietUntil is when the quiet hours end of the company of o, given args as $1 to $3 and quiet hours joined to it as q; NULL:
// it is not quiet.
const (
	quietJoin  = `LEFT JOIN unnest($1::bigint[], $2::timestamptz[]) q(company, until) ON q.company = o.company_id`
	quietUntil = `CASE WHEN q.company IS NULL THEN $3::timestamptz ELSE q.until END`
)

// PutOff lets what batches have queued wait for the end of their companies' quiet hours, and returns how much that was. What a
// dispatcher has in flight, or has begun to submit before, goes on.
func (s *Store) PutOff(ctx context.Context, quiet Quiet) (putOff int64, err error) {
	if !quiet.Some() {
		return 0, nil
	}
	companies, until, otherwise := quiet.args()
	for n := int64(holdAtOnce); n == holdAtOnce; putOff += n {
		tag, err := s.pool.Exec(ctx, `
			WITH free AS (
				SELECT o.carrier, o.lane, o.message_id, `+quietUntil+` AS until FROM outbox o `+quietJoin+`
				WHERE o.lane = $4 AND o.claimed_by IS NULL AND o.attempts = 0 AND o.due_at < `+quietUntil+`
				LIMIT $5 FOR UPDATE OF o SKIP LOCKED
			)
			UPDATE outbox o SET due_at = free.until, since = free.until, pushed_at = NULL FROM free
			WHERE (o.carrier, o.lane, o.message_id) = (free.carrier, free.lane, free.message_id)`,
			companies, until, otherwise, LaneBatch, holdAtOnce)
		if err != nil {
			return putOff, fmt.Errorf("putting off what waits in quiet hours: %w", err)
		}
		n = tag.RowsAffected()
	}
	return putOff, nil
}
