package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Released is a message whose time has come: it is on the outbox now.
type Released struct {
	Waiting

	Postponed bool // it waits there until its company's quiet hours end (PutOff)
}

// Due is a position in the order of scheduled messages by due time.
type Due struct {
	At time.Time
	ID int64 // of a message
}

// ReleaseScheduled moves up to limit due messages of a lane to the outbox, those due longest first, and returns them
// and the last one's position. It marks them as pushed: put them on the queue. It reads only after a position, so it
// does not read again the dead rows that an open snapshot keeps. Several processes may release at once. Its cost does
// not grow with later messages.
func (s *Store) ReleaseScheduled(ctx context.Context, lane, limit int, quiet Quiet, after Due) (released []Released,
	last Due, err error) {
	companies, until, otherwise := quiet.args()
	released, err = postgres.All(ctx, s.pool, "releasing scheduled messages",
		func(row pgx.CollectableRow) (r Released, err error) {
			err = row.Scan(&r.ID, &r.CompanyID, &r.Carrier, &r.Lane, &r.Postponed, &last.At, &last.ID)
			return r, err
		}, `
		WITH due AS MATERIALIZED (
			SELECT message_id, due_at FROM scheduled WHERE lane = $4 AND due_at <= now() AND (due_at, message_id) > ($6, $7)
			ORDER BY due_at, message_id LIMIT $5 FOR UPDATE SKIP LOCKED
		), gone AS (
			DELETE FROM scheduled s USING due WHERE s.message_id = due.message_id
			RETURNING s.message_id, s.company_id, s.carrier, s.lane, s.due_at, s.expires_at
		), waiting AS (
			INSERT INTO outbox (message_id, company_id, carrier, lane, due_at, pushed_at, expires_at, since)
			SELECT message_id, company_id, carrier, lane, coalesce(quiet, now()), CASE WHEN quiet IS NULL
				THEN now() END, expires_at, coalesce(quiet, due_at)
			FROM (
				SELECT o.*, CASE WHEN o.lane = 1 THEN `+quietUntil+` END AS quiet FROM gone o `+quietJoin+`
			) g
			ORDER BY message_id
			RETURNING message_id, company_id, carrier, lane, pushed_at IS NULL AS postponed
		)
		SELECT w.message_id, w.company_id, w.carrier, w.lane, w.postponed, l.due_at, l.message_id
		FROM waiting w CROSS JOIN (SELECT due_at, message_id FROM due ORDER BY due_at DESC, message_id DESC LIMIT 1) l`,
		companies, until, otherwise, lane, limit, after.At, after.ID)
	if err != nil {
		return nil, after, err
	}
	if len(released) == 0 {
		last = after
	}
	return released, last, nil
}

// NextRelease returns when the next scheduled message after a position of each lane is due; negative: it is overdue.
// some is false when none is scheduled. It reads one row of each lane. now is the database's time.
func (s *Store) NextRelease(ctx context.Context, after [2]Due) (wait time.Duration, some bool, now time.Time,
	err error) {
	var due *time.Time
	if err := s.pool.QueryRow(ctx, `SELECT least(
			(SELECT due_at FROM scheduled WHERE lane = 0 AND (due_at, message_id) > ($1, $2) ORDER BY due_at, message_id
			LIMIT 1),
			(SELECT due_at FROM scheduled WHERE lane = 1 AND (due_at, message_id) > ($3, $4) ORDER BY due_at, message_id
			LIMIT 1)), now()`,
		after[0].At, after[0].ID, after[1].At, after[1].ID).Scan(&due, &now); err != nil {
		return 0, false, now, fmt.Errorf("asking when the next scheduled message is due: %w", err)
	}
	if due == nil {
		return 0, false, now, nil
	}
	return due.Sub(now), true, now, nil
}

// Scheduled counts the scheduled messages, by lane.
func (s *Store) Scheduled(ctx context.Context) (lanes [2]int64, err error) {
	var lane, n int64
	return lanes, postgres.Each(ctx, s.pool, "counting scheduled messages", []any{&lane, &n},
		func() error { lanes[lane&1] = n; return nil },
		`SELECT lane, count(*) FROM scheduled GROUP BY lane`)
}
