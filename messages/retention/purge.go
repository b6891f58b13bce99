// Package retention removes what is kept no longer: messages, their texts and their recipients. It changes no status.
package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/numberfilter"
)

// Store has the purges of one database.
type Store struct {
	pool *pgxpool.Pool
}

// New returns the store of pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// Old messages are deleted in the order of their ids, which grow with time: a purge walks over them once, some
// thousands a step, and stores its position in sweeps. A step is one transaction, so a crash leaves nothing half
// deleted. An old message that is not final is written into unpurged and skipped; later steps try it again.
// docs/decisions.md explains why rows are deleted.

// Purge is a kind of deletion of old messages, from a closed set: a metric's label.
type Purge string

// Purges.
const (
	PurgeMessages Purge = "messages" // the messages, with all rows that belong to them
	PurgeBodies   Purge = "bodies"   // their texts, except those of companies with a BodyRule
	PurgeNumbers  Purge = "numbers"  // their recipients: the number becomes sms.Number.Obscured
)

// purgeStep is how many messages a step reads; it deletes some more to complete a batch.
const purgeStep = 2_000

// PurgedUpTo returns the id up to which old messages are deleted, except those that are not final; 0: none is.
func (s *Store) PurgedUpTo(ctx context.Context) (id int64, err error) {
	err = s.pool.QueryRow(ctx, `SELECT coalesce((SELECT up_to FROM sweeps WHERE name = $1), 0)`,
		PurgeMessages.sweep()).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("reading up to where messages are deleted: %w", err)
	}
	return id, nil
}

func (p Purge) sweep() string { return "purge " + string(p) }
func (p Purge) again() string { return "purge " + string(p) + " again" }

// PurgeBehind returns by how long the oldest message that a purge should have handled exceeds life; 0: none does. It
// looks at the first message that the purge has not reached and at the first 100 that it has skipped. A scheduled
// message's age counts from its time to be sent.
func (s *Store) PurgeBehind(ctx context.Context, p Purge, life time.Duration) (behind time.Duration, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT greatest(interval '0', now() - $3::interval - least(
		(SELECT created_at FROM messages WHERE id > greatest(coalesce((SELECT up_to FROM sweeps WHERE name = $1), 0), `+
		messages.PurgedFloor+`) ORDER BY id LIMIT 1),
		(SELECT min(coalesce(m.send_at, m.created_at)) FROM (
			SELECT message_id FROM unpurged WHERE kind = $2 ORDER BY message_id LIMIT 100) u
			JOIN messages m ON m.id = u.message_id)))`, p.sweep(), string(p), life).Scan(&behind); err != nil {
		return 0, fmt.Errorf("looking for %s to purge: %w", p, err)
	}
	return behind, nil
}

// Purge does one step: of up to 2,000 messages older than life it deletes what p covers of the final ones.
// [PurgeMessages] deletes a batch as a whole, once all its messages are final. It returns how many messages it handled,
// and whether more remain. Only one process at a time does a step; the others return at once.
func (s *Store) Purge(ctx context.Context, p Purge, life time.Duration) (purged int64, more bool, err error) {
	behind, err := s.PurgeBehind(ctx, p, life)
	if err != nil || behind == 0 { // the usual case
		return 0, false, err
	}
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		purged, more = 0, false
		if p == PurgeNumbers {
			if err := numberfilter.Lock(ctx, tx); err != nil {
				return err
			}
		}
		step := &purging{kind: p, life: life}
		mine, err := step.read(ctx, tx)
		if err != nil || !mine {
			return err
		}
		switch more = step.full; p {
		case PurgeBodies:
			purged, err = step.blank(ctx, tx)
		case PurgeNumbers:
			purged, err = step.obscure(ctx, tx)
		default:
			purged, err = step.remove(ctx, tx)
		}
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("purging %s: %w", p, err)
	}
	return purged, more, nil
}

// purging is the work of one step.
type purging struct {
	kind Purge
	life time.Duration
	full bool // it ended before it reached a young message

	leaving []int64 // final messages, ascending
	waiting []int64 // old ones that are not final
	batches []int64 // PurgeMessages: the batches of members; then of these the complete ones
	members []int64 // PurgeMessages: those that were read of batches
}

// read locks the purge's position, reads the next messages and some skipped ones, and advances the position. mine is
// false when another process has the lock.
func (p *purging) read(ctx context.Context, tx pgx.Tx) (mine bool, err error) {
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO sweeps (name, up_to) SELECT n, 0 FROM unnest($1::text[]) n WHERE NOT EXISTS (SELECT FROM sweeps
		WHERE name = n) ON CONFLICT DO NOTHING`,
		[]string{p.kind.sweep(), p.kind.again(), "purged"})
	var next, again int64
	b.Queue(`SELECT greatest(up_to, `+messages.PurgedFloor+
		`), (SELECT up_to FROM sweeps WHERE name = $2) FROM sweeps WHERE name = $1 FOR UPDATE SKIP LOCKED`,
		p.kind.sweep(), p.kind.again()).QueryRow(func(row pgx.Row) error { return row.Scan(&next, &again) })
	switch err := tx.SendBatch(ctx, b).Close(); {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	}
	var id int64
	var batch *int64
	var old, final, young bool
	seen := 0
	if err := postgres.Each(ctx, tx, "reading old messages", []any{&id, &batch, &old, &final}, func() error {
		if young = young || !old; !young {
			next, seen = id, seen+1
			p.note(id, batch, final)
		}
		return nil
	}, `SELECT id, batch_id, created_at < now() - $2::interval, `+longFinished+`
		FROM messages m WHERE id > $1 ORDER BY id LIMIT $3`, next, p.life, purgeStep); err != nil {
		return false, err
	}
	p.full = seen == purgeStep

	skipped, last := 0, int64(0)
	if err := postgres.Each(ctx, tx, "reading skipped messages", []any{&id, &batch, &final}, func() error {
		skipped, last = skipped+1, max(last, id)
		p.note(id, batch, final)
		return nil
	}, `SELECT u.message_id, m.batch_id, `+longFinished+` FROM (
			SELECT message_id FROM unpurged WHERE kind = $1 AND message_id > $4 ORDER BY message_id LIMIT $3
		) u JOIN messages m ON m.id = u.message_id`, string(p.kind), p.life, purgeStep, again); err != nil {
		return false, err
	}
	if skipped < purgeStep {
		last = 0 // the next step begins with the first
	}
	if err := p.complete(ctx, tx); err != nil {
		return false, err
	}
	slices.Sort(p.leaving) // the order of locking
	b = &pgx.Batch{}
	b.Queue(`UPDATE sweeps SET up_to = $2 WHERE name = $1 AND up_to <> $2`, p.kind.sweep(), next)
	b.Queue(`UPDATE sweeps SET up_to = $2 WHERE name = $1 AND up_to <> $2`, p.kind.again(), last)
	return true, tx.SendBatch(ctx, b).Close()
}

// note adds an old message to those that leave or wait, or to those whose batch decides that.
func (p *purging) note(id int64, batch *int64, final bool) {
	switch {
	case p.kind == PurgeMessages && batch != nil:
		p.batches, p.members = append(p.batches, *batch), append(p.members, id)
	case final:
		p.leaving = append(p.leaving, id)
	default:
		p.waiting = append(p.waiting, id)
	}
}

// finished is a condition on a message m: it is final and will not be sent again.
const finished = `m.status <> 0 AND NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id)`

// longFinished is a condition on an old message m: it is finished, and any send_at is longer than $2 ago.
const longFinished = finished + ` AND (m.send_at IS NULL OR m.send_at < now() - $2::interval)`

// blank deletes the texts of messages.
func (p *purging) blank(ctx context.Context, tx pgx.Tx) (blanked int64, err error) {
	others := ``
	if p.kind == PurgeBodies {
		others = ` AND m.company_id NOT IN (SELECT r.company_id FROM body_rules r)`
	}
	b := &pgx.Batch{}
	changed(b.Queue(`UPDATE messages m SET body = '', secret = NULL WHERE m.id = ANY($1) AND m.body <> ''`+others,
		p.leaving), &blanked)
	p.pass(b)
	return blanked, tx.SendBatch(ctx, b).Close()
}

// changed sets n to the number of rows that a queued statement changes.
func changed(statement *pgx.QueuedQuery, n *int64) {
	statement.Exec(func(tag pgconn.CommandTag) error {
		*n = tag.RowsAffected()
		return nil
	})
}

// pass records skipped messages, and deletes the records of handled ones.
func (p *purging) pass(b *pgx.Batch) {
	kinds := []string{string(p.kind)}
	if p.kind == PurgeMessages { // without the message there is not text and no number
		kinds = append(kinds, string(PurgeBodies), string(PurgeNumbers), messages.RuledBodies)
	}
	b.Queue(`DELETE FROM unpurged WHERE message_id = ANY($1) AND kind = ANY($2)`, p.leaving, kinds)
	b.Queue(`INSERT INTO unpurged (kind, message_id) SELECT $2, id FROM unnest($1::bigint[]) id ON CONFLICT DO NOTHING`,
		p.waiting, string(p.kind))
}
