package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// purgeEvents deletes at most $2 old events from blocks $3 to before $4 (purgeDelivered says why by block), and notes
// for each company how far its consumers have missed some. An event without a position was in front of all of them.
// Events of a company whose row is locked wait for the next day.
const purgeEvents = `
	WITH old AS MATERIALIZED (
		SELECT ctid AS place, company_id FROM events
		WHERE ctid >= format('(%s,0)', $3::bigint)::tid AND ctid < format('(%s,0)', $4::bigint)::tid
		AND at < now() - $1::interval LIMIT $2
	), locked AS MATERIALIZED (
		SELECT company_id FROM event_readers WHERE company_id IN (SELECT company_id FROM old) ORDER BY company_id
			FOR UPDATE SKIP LOCKED
	), gone AS (
		DELETE FROM events WHERE ctid = ANY(ARRAY(SELECT place FROM old WHERE company_id IN (SELECT company_id FROM locked)))
			RETURNING company_id, position
	), missed AS (
		UPDATE event_readers r SET last = r.last + (m.lowest < 0)::int, purged = greatest(r.purged, CASE WHEN m.lowest < 0
			THEN r.last + 1 ELSE m.highest END)
		FROM (SELECT company_id, min(position) AS lowest, max(position) AS highest FROM gone GROUP BY company_id) m
		WHERE r.company_id = m.company_id
	)
	SELECT FROM gone`

// forgetReaders ends the recording for companies that have fetched nothing for as long as events are kept: what their
// consumers have not got is deleted. If one comes back, it starts as a new one.
const forgetReaders = `
	UPDATE event_readers SET since = NULL, last = last + 1, purged = last + 1
	WHERE company_id = ANY(ARRAY(SELECT company_id FROM event_readers WHERE since IS NOT NULL
	AND pulled_at < now() - $1::interval FOR UPDATE SKIP LOCKED))`

// eventPurge is the progress of deleting old events: the block where the next part begins. Negative: not begun.
type eventPurge struct{ block int64 }

// next deletes a part of the events older than Options.Retention, as purge does deliveries. It returns how many.
func (p *eventPurge) next(ctx context.Context, c *core, parts int64) (gone int64, err error) {
	var size int64
	if err := c.pool.QueryRow(ctx, `SELECT pg_relation_size('events') / current_setting('block_size')::int`).Scan(
		&size); err != nil {
		return 0, fmt.Errorf("deleting old events: %w", err)
	}
	if p.block < 0 {
		p.block = size * (time.Now().Unix() % int64(day/time.Second)) / int64(day/time.Second)
	}
	next := p.block + size/parts + 1
	b := &pgx.Batch{}
	b.Queue(purgeEvents, c.opts.Retention, purgeBatch, p.block, next).Exec(
		func(done pgconn.CommandTag) error { gone = done.RowsAffected(); return nil })
	b.Queue(forgetReaders, c.opts.Retention)
	if err := c.pool.SendBatch(ctx, b).Close(); err != nil {
		return gone, fmt.Errorf("deleting old events: %w", err)
	}
	switch {
	case gone == purgeBatch:
		next = p.block
	case next >= size:
		next = 0
	}
	p.block = next
	return gone, nil
}
