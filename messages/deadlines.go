package messages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	fail := func(err error) (bool, error) { return false, fmt.Errorf("sweeping expired messages: %w", err) }
	if _, err := tx.Exec(ctx, `INSERT INTO sweeps (name, up_to) VALUES ($1, 0) ON CONFLICT DO NOTHING`, expiringSweep); err != nil {
		return fail(err)
	}
	var from int64
	if err := tx.QueryRow(ctx, `SELECT up_to FROM sweeps WHERE name = $1 FOR UPDATE`, expiringSweep).Scan(&from); err != nil {
		return fail(err)
	}
	var old bool // look at the next one first: most rounds end here
	err = tx.QueryRow(ctx, `SELECT created_at < now() - $2::interval FROM messages WHERE id > $1 ORDER BY id LIMIT 1`, from, validity).Scan(&old)
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && !old) {
		return true, nil
	}
	if err != nil {
		return fail(err)
	}
	upTo, seen := from, 0
	var id int64
	var pending bool
	var open []int64
	if err := postgres.Each(ctx, tx, "reading the next messages", []any{&id, &pending, &old}, func() error {
		if done = done || !old; done {
			return nil
		}
		if upTo, seen = id, seen+1; pending {
			open = append(open, id)
		}
		return nil
	}, `SELECT id, status = 0, created_at < now() - $2::interval FROM messages WHERE id > $1 ORDER BY id LIMIT $3`, from, validity, limit); err != nil {
		return fail(err)
	}
	b := &pgx.Batch{}
	b.Queue(`UPDATE sweeps SET up_to = $2 WHERE name = $1`, expiringSweep, upTo)
	if len(open) > 0 {
		b.Queue(`INSERT INTO deadlines (message_id, expires_at, look_at) SELECT m.id, `+expiry("$2")+`, `+expiry("$2")+`
			FROM messages m WHERE m.id = ANY($1) AND m.carrier <> $3 ORDER BY m.id ON CONFLICT DO NOTHING`, open, validity, sms.SandboxCarrier)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fail(err)
	}
	return done || seen < limit, nil
}

// deadlineAgain is after how long an overdue message that still waits is checked again: its expiry is another task's.
const deadlineAgain = time.Minute

// ReceiptTimeouts says whose messages a process decides, and how long after their validity.
type ReceiptTimeouts struct {
	Own       map[string]time.Duration // its carriers
	Served    []string                 // the carriers that some process has in its configuration, its own included
	Otherwise time.Duration            // of carriers that no process has: any process decides
}

func (r ReceiptTimeouts) of(carrier string) time.Duration {
	if timeout, own := r.Own[carrier]; own {
		return timeout
	}
	return r.Otherwise
}

// Overdue checks up to limit messages whose time to be looked at has come and about which this process decides, and
// returns those still pending although their carrier's timeout has passed since their validity, with their carriers. done
// means that no more are due. It checks a message a few times at most.
func (s *Store) Overdue(ctx context.Context, tx pgx.Tx, timeouts ReceiptTimeouts, limit int) (overdue map[int64]string, done bool, err error) {
	fail := func(err error) (map[int64]string, bool, error) {
		return nil, false, fmt.Errorf("looking for overdue messages: %w", err)
	}
	var (
		id             int64
		expires, now   time.Time
		pending, waits bool
		carrier        string
		over, again    []int64
		at             []time.Time
	)
	own := slices.AppendSeq([]string{}, maps.Keys(timeouts.Own))
	overdue = make(map[int64]string)
	if err := postgres.Each(ctx, tx, "taking those that are due", []any{&id, &expires, &now, &pending, &carrier, &waits}, func() error {
		look := now.Add(deadlineAgain)
		if pending && !waits {
			look = expires.Add(timeouts.of(carrier))
		}
		if pending && look.After(now) {
			again, at = append(again, id), append(at, look)
			return nil
		}
		over = append(over, id)
		if pending {
			overdue[id] = carrier
		}
		return nil
	}, `
		WITH due AS MATERIALIZED (
			SELECT d.message_id, d.expires_at, coalesce(m.status = 0, false) AS pending, coalesce(m.carrier, '') AS carrier
			FROM deadlines d LEFT JOIN messages m ON m.id = d.message_id
			WHERE d.look_at <= now() AND (m.status IS DISTINCT FROM 0 OR m.carrier = ANY($2) OR m.carrier <> ALL($3))
			ORDER BY d.look_at LIMIT $1 FOR UPDATE OF d SKIP LOCKED
		)
		SELECT d.message_id, d.expires_at, now(), d.pending, d.carrier,
			EXISTS (SELECT FROM outbox o WHERE o.message_id = d.message_id AND (o.claimed_by IS NULL OR o.expires_at > now()))
				OR EXISTS (SELECT FROM scheduled s WHERE s.message_id = d.message_id)
		FROM due d`, limit, own, append([]string{}, timeouts.Served...)); err != nil {
		return fail(err)
	}
	b := &pgx.Batch{}
	if len(over) > 0 {
		b.Queue(`DELETE FROM deadlines WHERE message_id = ANY($1)`, over)
	}
	if len(again) > 0 {
		b.Queue(`UPDATE deadlines d SET look_at = u.at FROM unnest($1::bigint[], $2::timestamptz[]) u(id, at) WHERE d.message_id = u.id`, again, at)
	}
	if b.Len() > 0 {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fail(err)
		}
	}
	return overdue, len(over)+len(again) < limit, nil
}
