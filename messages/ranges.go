package messages

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PurgedFloor is an id up to which all messages are deleted. Queries for the oldest messages start after it: otherwise
// they read the index entries of deleted rows until those are vacuumed.
const PurgedFloor = `(SELECT coalesce((SELECT up_to FROM sweeps WHERE name = 'purged'), 0))`

// Skew bounds how far ids and created_at may be out of order: an id is drawn during its transaction, created_at is the
// transaction's start.
const Skew = time.Minute

// OfCompany is a condition on messages m: those of company $1 from id $3 on and below $2, in the order of NewestFirst.
// Only the index of the company's messages has such ranges. With company_id = $1 the planner may take the primary key
// for a company with many messages, and so read those of all companies since its newest one.
const (
	OfCompany   = `(m.company_id, m.id) < ($1, $2) AND (m.company_id, m.id) >= ($1, greatest($3, ` + PurgedFloor + ` + 1))`
	NewestFirst = ` ORDER BY m.company_id DESC, m.id DESC`
)

// Reach returns the ids [after, until) of the messages created in [from, to). A zero time leaves that side open.
func Reach(ctx context.Context, pool *pgxpool.Pool, from, to time.Time) (after, until int64, err error) {
	until = math.MaxInt64
	batch := &pgx.Batch{}
	if !from.IsZero() {
		batch.Queue(IDAt, from.Add(-Skew)).QueryRow(func(row pgx.Row) error { return row.Scan(&after) })
	}
	if !to.IsZero() {
		batch.Queue(IDAt, to.Add(Skew)).QueryRow(func(row pgx.Row) error { return row.Scan(&until) })
	}
	if batch.Len() == 0 {
		return after, until, nil
	}
	if err := pool.SendBatch(ctx, batch).Close(); err != nil {
		return 0, 0, fmt.Errorf("looking for the messages of a time: %w", err)
	}
	return after, until, nil
}

// IDAt finds an id that separates the messages created before a time from the others, within Skew. created_at has no
// index, because ids grow with it: a binary search over the ids takes some thirty reads of one row by its key. (A ULID
// has a time too, but of another machine's clock.)
const IDAt = `
	WITH RECURSIVE halves AS (
		SELECT coalesce((SELECT id FROM messages WHERE id > ` + PurgedFloor + ` ORDER BY id LIMIT 1), 0) AS low,
			coalesce((SELECT id FROM messages WHERE id > ` + PurgedFloor +
	` ORDER BY id DESC LIMIT 1), 0) + 1 AS high -- the boundary is in [low, high]
		UNION ALL
		SELECT CASE WHEN m.created_at < $1 THEN m.id + 1 ELSE h.low END, CASE WHEN m.created_at < $1 THEN h.high
			ELSE (h.low + h.high) / 2 END
		FROM halves h LEFT JOIN LATERAL (
			SELECT id, created_at FROM messages WHERE id >= (h.low + h.high) / 2 ORDER BY id LIMIT 1
		) m ON true
		WHERE h.low < h.high
	)
	SELECT low FROM halves WHERE low >= high`
