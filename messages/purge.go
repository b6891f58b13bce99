package messages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
)

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

// purgedFloor is an id up to which all messages are deleted. Queries for the oldest messages start after it: otherwise
// they read the index entries of deleted rows until those are vacuumed.
const purgedFloor = `(SELECT coalesce((SELECT up_to FROM sweeps WHERE name = 'purged'), 0))`

// PurgedUpTo returns the id up to which old messages are deleted, except those that are not final; 0: none is.
func (s *Store) PurgedUpTo(ctx context.Context) (id int64, err error) {
	err = s.pool.QueryRow(ctx, `SELECT coalesce((SELECT up_to FROM sweeps WHERE name = $1), 0)`, PurgeMessages.sweep()).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("reading up to where messages are deleted: %w", err)
	}
	return id, nil
}

func (p Purge) sweep() string { return "purge " + string(p) }
func (p Purge) again() string { return "purge " + string(p) + " again" }

// oldest is the creation time of the oldest message that a purge has not reached ($1), or has skipped ($2; of the first
// 100); NULL: there is none. A scheduled message's age counts from its time to be sent.
const oldest = `SELECT least(
	(SELECT created_at FROM messages WHERE id > greatest(coalesce((SELECT up_to FROM sweeps WHERE name = $1), 0), ` + purgedFloor + `) ORDER BY id LIMIT 1),
	(SELECT min(coalesce(m.send_at, m.created_at)) FROM (SELECT message_id FROM unpurged WHERE kind = $2 ORDER BY message_id LIMIT 100) u
		JOIN messages m ON m.id = u.message_id))`

// PurgeBehind returns by how long the oldest message that a purge should have handled exceeds life; 0: none does.
func (s *Store) PurgeBehind(ctx context.Context, p Purge, life time.Duration) (behind time.Duration, err error) {
	var over *time.Duration
	if err := s.pool.QueryRow(ctx, `SELECT now() - o.created_at - $3::interval FROM (`+oldest+` AS created_at) o`, p.sweep(), string(p), life).Scan(&over); err != nil {
		return 0, fmt.Errorf("looking for %s to purge: %w", p, err)
	}
	if over != nil {
		behind = max(*over, 0)
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
			if err := lockFilters(ctx, tx); err != nil {
				return err
			}
		}
		step, mine, err := nextStep(ctx, tx, p, life)
		if err != nil || !mine {
			return err
		}
		switch p {
		case PurgeBodies:
			purged, err = step.blank(ctx, tx)
		case PurgeNumbers:
			purged, err = step.obscure(ctx, tx)
		default:
			purged, err = step.remove(ctx, tx)
		}
		more = step.full
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
	batches []int64 // complete batches of leaving messages
}

// nextStep locks a purge's position and advances it. mine is false when another process has the lock.
func nextStep(ctx context.Context, tx pgx.Tx, p Purge, life time.Duration) (step *purging, mine bool, err error) {
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO sweeps (name, up_to) SELECT n, 0 FROM unnest($1::text[]) n WHERE NOT EXISTS (SELECT FROM sweeps WHERE name = n) ON CONFLICT DO NOTHING`,
		[]string{p.sweep(), p.again(), "purged"})
	var upTo, again, floor int64
	b.Queue(`SELECT up_to FROM sweeps WHERE name = $1 FOR UPDATE SKIP LOCKED`, p.sweep()).QueryRow(func(row pgx.Row) error { return row.Scan(&upTo) })
	b.Queue(`SELECT (SELECT up_to FROM sweeps WHERE name = $1), `+purgedFloor, p.again()).QueryRow(func(row pgx.Row) error { return row.Scan(&again, &floor) })
	switch err := tx.SendBatch(ctx, b).Close(); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}

	step = &purging{kind: p, life: life}
	batches := map[int64]bool{}
	var singles []int64
	note := func(id int64, batch *int64, final bool) {
		switch {
		case p == PurgeMessages && batch != nil:
			batches[*batch] = true
		case final:
			singles = append(singles, id)
		default:
			step.waiting = append(step.waiting, id)
		}
	}
	var id int64
	var batch *int64
	var old, final, young bool
	next, seen := max(upTo, floor), 0
	var here []int64
	if err := postgres.Each(ctx, tx, "reading old messages", []any{&id, &batch, &old, &final}, func() error {
		if young = young || !old; !young {
			next, seen = id, seen+1
			here = append(here, id)
			note(id, batch, final)
		}
		return nil
	}, `SELECT id, batch_id, created_at < now() - $2::interval, `+rested+`
		FROM messages m WHERE id > $1 ORDER BY id LIMIT $3`, next, life, purgeStep); err != nil {
		return nil, false, err
	}
	step.full = seen == purgeStep

	// Skipped messages, some at each step.
	passed, last := 0, int64(0)
	if err := postgres.Each(ctx, tx, "reading skipped messages", []any{&id, &batch, &final}, func() error {
		passed, last = passed+1, max(last, id)
		note(id, batch, final)
		return nil
	}, `SELECT u.message_id, m.batch_id, `+rested+` FROM (
			SELECT message_id FROM unpurged WHERE kind = $1 AND message_id > $4 ORDER BY message_id LIMIT $3
		) u JOIN messages m ON m.id = u.message_id`, string(p), life, purgeStep, again); err != nil {
		return nil, false, err
	}
	if passed < purgeStep {
		last = 0
	}
	step.leaving = singles
	if err := step.whole(ctx, tx, batches, here); err != nil {
		return nil, false, err
	}
	slices.Sort(step.leaving) // the order of locking
	b = &pgx.Batch{}
	b.Queue(`UPDATE sweeps SET up_to = $2 WHERE name = $1 AND up_to <> $2`, p.sweep(), next)
	b.Queue(`UPDATE sweeps SET up_to = $2 WHERE name = $1 AND up_to <> $2`, p.again(), last)
	return step, true, tx.SendBatch(ctx, b).Close()
}

// decided is a condition: the message is final and will not be sent again.
const decided = `m.status <> 0 AND NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id)`

// rested is a condition on an old message: it is decided, and any send_at is longer than $2 ago.
const rested = decided + ` AND (m.send_at IS NULL OR m.send_at < now() - $2::interval)`

// whole adds the messages of completely final batches to leaving, and the messages of other batches that the walk has
// just passed to waiting.
func (p *purging) whole(ctx context.Context, tx pgx.Tx, batches map[int64]bool, here []int64) error {
	if len(batches) == 0 {
		return nil
	}
	ids := make([]int64, 0, len(batches))
	for id := range batches {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	passed := make(map[int64]bool, len(here))
	for _, id := range here {
		passed[id] = true
	}
	members := make(map[int64][]int64, len(ids))
	open := map[int64]bool{}
	var batch, id int64
	var final bool
	if err := postgres.Each(ctx, tx, "reading batches", []any{&batch, &id, &final}, func() error {
		members[batch] = append(members[batch], id)
		open[batch] = open[batch] || !final
		return nil
	}, `SELECT m.batch_id, m.id, `+rested+` FROM messages m WHERE m.batch_id = ANY($1)`, ids, p.life); err != nil {
		return err
	}
	for _, batch := range ids {
		if !open[batch] {
			p.leaving, p.batches = append(p.leaving, members[batch]...), append(p.batches, batch)
			continue
		}
		for _, id := range members[batch] {
			if passed[id] {
				p.waiting = append(p.waiting, id)
			}
		}
	}
	return nil
}

// blank deletes the texts of messages.
func (p *purging) blank(ctx context.Context, tx pgx.Tx) (blanked int64, err error) {
	b := &pgx.Batch{}
	statement, count := p.blanking(&blanked)
	b.Queue(statement, p.leaving).Exec(count)
	p.pass(b)
	return blanked, tx.SendBatch(ctx, b).Close()
}

// pass records skipped messages, and deletes the records of handled ones.
func (p *purging) pass(b *pgx.Batch) {
	kinds := []string{string(p.kind)}
	if p.kind == PurgeMessages { // without the message there is no text and no number
		kinds = append(kinds, string(PurgeBodies), string(PurgeNumbers), ruledBodies)
	}
	b.Queue(`DELETE FROM unpurged WHERE message_id = ANY($1) AND kind = ANY($2)`, p.leaving, kinds)
	b.Queue(`INSERT INTO unpurged (kind, message_id) SELECT $2, id FROM unnest($1::bigint[]) id ON CONFLICT DO NOTHING`, p.waiting, string(p.kind))
}

// remove deletes messages with all rows that belong to them.
func (p *purging) remove(ctx context.Context, tx pgx.Tx) (removed int64, err error) {
	open, err := p.aside(ctx, tx)
	if err != nil {
		return 0, err
	}
	b := &pgx.Batch{}
	b.Queue(`WITH request AS (
			SELECT coalesce(b.ulid, m.ulid) AS ref, m.company_id, count(*) AS messages, sum(m.segments) AS segments
			FROM messages m LEFT JOIN batches b ON b.id = m.batch_id
			WHERE m.id = ANY($1) AND NOT m.test AND m.company_id <> 0 GROUP BY 1, 2
		)
		INSERT INTO purged AS p (company_id, requests, messages, segments, mark)
		SELECT company_id, count(*), sum(messages), sum(segments), sum(purge_mark(ref, segments)) FROM request GROUP BY company_id ORDER BY company_id
		ON CONFLICT (company_id) DO UPDATE SET requests = p.requests + excluded.requests, messages = p.messages + excluded.messages,
			segments = p.segments + excluded.segments, mark = p.mark + excluded.mark`, p.leaving)
	receipts.QueuePurge(b, p.leaving)
	b.Queue(`DELETE FROM sent_on WHERE message_id = ANY($1)`, p.leaving)
	b.Queue(`DELETE FROM sandbox WHERE message_id = ANY($1)`, p.leaving)
	b.Queue(forgetReferences, p.leaving)
	b.Queue(`DELETE FROM messages m WHERE m.id = ANY($1) AND `+decided, p.leaving).Exec(func(tag pgconn.CommandTag) error {
		if removed = tag.RowsAffected(); removed != int64(len(p.leaving)) {
			return fmt.Errorf("of %d messages that were final %d are", len(p.leaving), removed)
		}
		return nil
	})
	b.Queue(`DELETE FROM batches WHERE id = ANY($1)`, p.batches)
	p.pass(b)
	b.Queue(`UPDATE sweeps SET up_to = least((SELECT up_to FROM sweeps WHERE name = $1), (SELECT message_id - 1 FROM unpurged WHERE kind = $2 ORDER BY message_id LIMIT 1))
		WHERE name = 'purged'`, p.kind.sweep(), string(p.kind))
	b.Queue(`DELETE FROM unpurged WHERE kind <> $1 AND message_id <= `+purgedFloor, string(PurgeMessages)) // records of another purge that passed just before
	b.Queue(`DELETE FROM number_filters WHERE chunk < (SELECT up_to FROM sweeps WHERE name = 'purged') / $1 AND chunk < (SELECT max(chunk) FROM number_filters)`, filterChunk)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return 0, err
	}
	for _, chunk := range open {
		if err := recount(ctx, tx, chunk); err != nil {
			return 0, err
		}
	}
	return removed, nil
}

// forgetReferences deletes the last reference of a sender and a number, unless a message after these ($1) has taken
// one.
const forgetReferences = `WITH last AS (
		SELECT c.sender, c.phone_number FROM messages m JOIN concat_refs c ON c.sender = m.sender AND c.phone_number = m.phone_number AND c.used_at <= m.created_at
		WHERE m.id = ANY($1) ORDER BY c.sender, c.phone_number FOR UPDATE OF c SKIP LOCKED
	)
	DELETE FROM concat_refs c USING last WHERE c.sender = last.sender AND c.phone_number = last.phone_number`

// aside keeps the daily counts of messages whose chunk is still open, under the chunk's negative number. It returns
// these chunks, to be counted again once the messages are deleted.
func (p *purging) aside(ctx context.Context, tx pgx.Tx) (open []int64, err error) {
	var chunks []int64
	for _, id := range slices.Concat(p.leaving, p.waiting) { // Tally begins after the highest chunk
		if chunk := id / tallyChunk; !slices.Contains(chunks, chunk) {
			chunks = append(chunks, chunk)
		}
	}
	if _, err := tx.Exec(ctx, `INSERT INTO tally_chunks (chunk) SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING`, chunks); err != nil {
		return nil, err
	}
	if open, err = postgres.All(ctx, tx, "locking tallies", pgx.RowTo[int64],
		`SELECT chunk FROM tally_chunks WHERE chunk = ANY($1) AND NOT closed ORDER BY chunk FOR UPDATE`, chunks); err != nil || len(open) == 0 {
		return nil, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO tallies AS t (company_id, day, chunk, carrier, pending, sent, failed)
		SELECT company_id, `+burundi+`, -1 - id / $3, carrier, 0, count(*) FILTER (WHERE status = 1), count(*) FILTER (WHERE status = 2)
		FROM messages WHERE id = ANY($1) AND id / $3 = ANY($2) AND company_id <> 0 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
		ON CONFLICT (company_id, day, chunk, carrier) DO UPDATE SET sent = t.sent + excluded.sent, failed = t.failed + excluded.failed`,
		p.leaving, open, tallyChunk)
	return open, err
}
