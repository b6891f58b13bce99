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

// of is until when a company's batches are not sent; zero: they are.
func (q Quiet) of(company int64) time.Time {
	if until, own := q.Until[company]; own {
		return until
	}
	return q.Otherwise
}

// Begins reports whether anybody's batches are not sent, or not for longer, who were to be sent before.
func (q Quiet) Begins(before Quiet) bool {
	begins := q.Otherwise.After(before.Otherwise)
	for _, own := range []map[int64]time.Time{q.Until, before.Until} {
		for company := range own {
			begins = begins || q.of(company).After(before.of(company))
		}
	}
	return begins
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

// PutOff lets those of messages, by their ids, wait for the end of their companies' quiet hours that are of batches and that
// nobody has tried, and returns how many. What a dispatcher has in flight, or has begun to submit before, goes on.
func (s *Store) PutOff(ctx context.Context, quiet Quiet, ids []int64) (int64, error) {
	companies, until, otherwise := quiet.args()
	tag, err := s.pool.Exec(ctx, `
		WITH free AS (
			SELECT o.message_id, `+quietUntil+` AS until FROM outbox o `+quietJoin+`
			WHERE o.message_id = ANY($5) AND o.lane = $4 AND o.claimed_by IS NULL AND o.attempts = 0 AND o.due_at < `+quietUntil+`
			FOR UPDATE OF o SKIP LOCKED
		)
		UPDATE outbox o SET due_at = free.until, since = free.until, pushed_at = NULL FROM free WHERE o.message_id = free.message_id`,
		companies, until, otherwise, LaneBatch, ids)
	if err != nil {
		return 0, fmt.Errorf("putting off %d messages in quiet hours: %w", len(ids), err)
	}
	return tag.RowsAffected(), nil
}
