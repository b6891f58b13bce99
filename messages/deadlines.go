package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// A pending message is decided when its carrier's time for receipts after its validity is over. A row of deadlines says
// when to look at it. Messages with an end of their own get theirs with the message, the others from Expiring.

// expiringSweep is the sweep of Expiring.
const expiringSweep = "expiring"

// Expiring walks on over the messages that were accepted longer than validity ago, and gives those still pending a row
// of deadlines. It reads up to limit messages a call; done means that it has come to a younger one. It visits each
// message once, so its cost does not grow with the history.
func (s *Store) Expiring(ctx context.Context, tx pgx.Tx, validity time.Duration, limit int) (done bool, err error) {
	var from int64
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO sweeps (name, up_to) VALUES ($1, 0) ON CONFLICT DO NOTHING`, expiringSweep)
	b.Queue(`SELECT up_to FROM sweeps WHERE name = $1 FOR UPDATE`, expiringSweep).QueryRow(
		func(row pgx.Row) error { return row.Scan(&from) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return false, fmt.Errorf("locking the sweep of expired messages: %w", err)
	}
	// Most calls end at the first message: it is looked at alone.
	if err := tx.QueryRow(ctx, `
		WITH next AS MATERIALIZED (
			SELECT id, status, carrier, created_at, send_at, expire_at FROM messages
			WHERE id > $1 AND (SELECT created_at < now() - $2::interval FROM messages WHERE id > $1 ORDER BY id LIMIT 1)
			ORDER BY id LIMIT $3
		), m AS MATERIALIZED (
			SELECT * FROM next WHERE id < coalesce((SELECT min(id) FROM next WHERE created_at >= now() - $2::interval),
				9223372036854775807)
		), swept AS (
			UPDATE sweeps SET up_to = (SELECT max(id) FROM m) WHERE name = $4 AND EXISTS (SELECT FROM m)
		), noted AS (
			INSERT INTO deadlines (message_id, expires_at, look_at)
			SELECT id, `+Expiry("$2")+`, `+Expiry("$2")+` FROM m WHERE status = 0 AND carrier <> $5 ORDER BY id
				ON CONFLICT DO NOTHING
		)
		SELECT count(*) < $3 FROM m`, from, validity, limit, expiringSweep, sms.SandboxCarrier).Scan(&done); err != nil {
		return false, fmt.Errorf("sweeping expired messages: %w", err)
	}
	return done, nil
}

// ReceiptTimeouts says whose messages a process decides, and how long after their validity.
type ReceiptTimeouts struct {
	Own       map[string]time.Duration // its carriers
	Served    []string                 // the carriers that some process has in its configuration, its own included
	Otherwise time.Duration            // of carriers that no process has: any process decides
}

// Overdue checks up to limit messages whose time to be looked at has come and about which this process decides, and
// returns those still pending although their carrier's timeout has passed since their validity, with their carriers. It
// looks again after a minute at those that still wait: their expiry is another task's. done means that no more are due.
func (s *Store) Overdue(ctx context.Context, tx pgx.Tx, timeouts ReceiptTimeouts, limit int) (overdue map[int64]string,
	done bool, err error) {
	own, after := make([]string, 0, len(timeouts.Own)), make([]time.Duration, 0, len(timeouts.Own))
	for carrier, timeout := range timeouts.Own {
		own, after = append(own, carrier), append(after, timeout)
	}
	overdue = make(map[int64]string)
	var id int64
	var carrier string
	var over bool
	seen := 0
	err = postgres.Each(ctx, tx, "looking for overdue messages", []any{&id, &carrier, &over}, func() error {
		if seen++; over {
			overdue[id] = carrier
		}
		return nil
	}, `
		WITH due AS MATERIALIZED (
			SELECT d.message_id, d.expires_at, coalesce(m.status = 0, false) AS pending, coalesce(m.carrier, '') AS carrier
			FROM deadlines d LEFT JOIN messages m ON m.id = d.message_id
			WHERE d.look_at <= now() AND (m.status IS DISTINCT FROM 0 OR m.carrier = ANY($2) OR m.carrier <> ALL($3))
			ORDER BY d.look_at LIMIT $1 FOR UPDATE OF d SKIP LOCKED
		), looked AS MATERIALIZED (
			SELECT d.message_id, d.pending, d.carrier, CASE
				WHEN EXISTS (SELECT FROM outbox o WHERE o.message_id = d.message_id AND (o.claimed_by IS NULL
				OR o.expires_at > now()))
					OR EXISTS (SELECT FROM scheduled s WHERE s.message_id = d.message_id) THEN now() + interval '1 minute'
				ELSE d.expires_at + coalesce(t.after, $5::interval) END AS at
			FROM due d LEFT JOIN unnest($2::text[], $4::interval[]) t(carrier, after) ON t.carrier = d.carrier
		), again AS (
			UPDATE deadlines d SET look_at = l.at FROM looked l WHERE d.message_id = l.message_id AND l.pending AND l.at > now()
		), gone AS (
			DELETE FROM deadlines d USING looked l WHERE d.message_id = l.message_id AND NOT (l.pending AND l.at > now())
		)
		SELECT message_id, carrier, pending AND at <= now() FROM looked`,
		limit, own, append([]string{}, timeouts.Served...), after, timeouts.Otherwise)
	return overdue, seen < limit, err
}
