package retention

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/numberfilter"
	"intumwa/messages/receipts"
	"intumwa/messages/statistics"
)

// complete adds all messages of completely final batches to those that leave, and the members of other batches to those
// that wait.
func (p *purging) complete(ctx context.Context, tx pgx.Tx) error {
	if len(p.batches) == 0 {
		return nil
	}
	slices.Sort(p.batches)
	slices.Sort(p.members)
	read := slices.Compact(p.batches)
	p.batches = nil
	var batch, id int64
	var final bool // all of its batch
	err := postgres.Each(ctx, tx, "reading batches", []any{&batch, &id, &final}, func() error {
		if final {
			p.leaving, p.batches = append(p.leaving, id), append(p.batches, batch)
		} else if _, member := slices.BinarySearch(p.members, id); member {
			p.waiting = append(p.waiting, id)
		}
		return nil
	}, `SELECT m.batch_id, m.id, bool_and(`+longFinished+`) OVER (PARTITION BY m.batch_id) FROM messages m
		WHERE m.batch_id = ANY($1) ORDER BY m.batch_id`, read, p.life)
	p.batches = slices.Compact(p.batches)
	return err
}

// remove deletes messages with all rows that belong to them.
func (p *purging) remove(ctx context.Context, tx pgx.Tx) (removed int64, err error) {
	open, err := statistics.Aside(ctx, tx, p.leaving, p.waiting)
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
		SELECT company_id, count(*), sum(messages), sum(segments), sum(purge_mark(ref, segments)) FROM request
			GROUP BY company_id ORDER BY company_id
		ON CONFLICT (company_id) DO UPDATE SET requests = p.requests + excluded.requests,
		messages = p.messages + excluded.messages,
			segments = p.segments + excluded.segments, mark = p.mark + excluded.mark`, p.leaving)
	b.Queue(`DELETE FROM carrier_moves WHERE message_id = ANY($1)`, p.leaving)
	b.Queue(`DELETE FROM sandbox WHERE message_id = ANY($1)`, p.leaving)
	b.Queue(forgetReferences, p.leaving)
	b.Queue(`DELETE FROM messages m WHERE m.id = ANY($1) AND `+finished, p.leaving).Exec(
		func(tag pgconn.CommandTag) error {
			if removed = tag.RowsAffected(); removed != int64(len(p.leaving)) {
				return fmt.Errorf("of %d messages that were final %d are", len(p.leaving), removed)
			}
			return nil
		})
	receipts.QueuePurge(b, p.leaving)
	b.Queue(`DELETE FROM batches WHERE id = ANY($1)`, p.batches)
	p.pass(b)
	b.Queue(`UPDATE sweeps SET up_to = least((SELECT up_to FROM sweeps WHERE name = $1), (SELECT message_id - 1
		FROM unpurged WHERE kind = $2 ORDER BY message_id LIMIT 1))
		WHERE name = 'purged'`, p.kind.sweep(), string(p.kind))
	// records of another purge that passed just before
	b.Queue(`DELETE FROM unpurged WHERE kind <> $1 AND message_id <= `+messages.PurgedFloor, string(PurgeMessages))
	numberfilter.QueuePurge(b)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return 0, err
	}
	return removed, statistics.Recount(ctx, tx, open)
}

// forgetReferences deletes the last reference of a sender and a number, unless a message after these ($1) has taken
// one.
const forgetReferences = `WITH last AS (
		SELECT c.sender, c.phone_number FROM messages m JOIN concat_refs c ON c.sender = m.sender
			AND c.phone_number = m.phone_number AND c.used_at <= m.created_at
		WHERE m.id = ANY($1) ORDER BY c.sender, c.phone_number FOR UPDATE OF c SKIP LOCKED
	)
	DELETE FROM concat_refs c USING last WHERE c.sender = last.sender AND c.phone_number = last.phone_number`
