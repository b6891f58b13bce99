package rerouting

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// Unanswered is a message that only an operator can decide: its carrier may have it, and it is not sent again.
type Unanswered struct {
	ID        int64
	ULID      ulid.ULID
	CompanyID int64
	Carrier   string
	Number    sms.Number
	CreatedAt time.Time
	ExpiresAt time.Time // until then it can be sent again
	Segments  int       // that the carrier has neither answered nor reported
}

// unansweredRead is how many submit records one call of Unanswered reads at most.
const unansweredRead = 10_000

// Unanswered returns up to limit undecided messages with ids above after of which a segment is neither answered nor
// reported (on_ambiguous: hold, after a restore, or at a retired carrier), by id; of one carrier, or with "" of all.
// validity is that of messages without an end of their own. It reads 10,000 of the submit records without an answer at
// most, whose messages may all be decided. next is where the next call continues, 0 at the end.
func (s *Store) Unanswered(ctx context.Context, carrier string, after int64, limit int, validity time.Duration) (
	page []Unanswered, next int64, err error) {
	err = s.lookup(ctx, func(tx pgx.Tx) (err error) {
		if next, err = receipts.WithoutAnswerUpTo(ctx, tx, after, unansweredRead); err != nil {
			return err
		}
		page, err = postgres.All(ctx, tx, "listing unanswered messages",
			func(row pgx.CollectableRow) (u Unanswered, err error) {
				var id [16]byte
				err = row.Scan(&u.ID, &id, &u.CompanyID, &u.Carrier, &u.Number, &u.CreatedAt, &u.ExpiresAt, &u.Segments)
				u.ULID = id
				return u, err
			}, `SELECT m.id, m.ulid, m.company_id, m.carrier, m.phone_number, m.created_at, `+messages.Expiry("$4")+`, s.segments
		FROM `+receipts.Open(`s.message_id > $1 AND s.message_id <= coalesce(nullif($5, 0), 9223372036854775807)`)+
				` s JOIN messages m ON m.id = s.message_id
		WHERE ($2 = '' OR m.carrier = $2) AND `+undecided+` ORDER BY s.message_id LIMIT $3`, after, carrier, limit, validity,
			next)
		if len(page) == limit {
			next = page[limit-1].ID
		}
		return err
	})
	return page, next, err
}

// lookup runs statements over unanswered messages in a transaction whose planner goes from index to index: from a page
// of submit records to their messages. It would otherwise join all of them.
func (s *Store) lookup(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _,
			err := tx.Exec(
			ctx, outbox.ByIndex+
				`, set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`); err != nil {
			return fmt.Errorf("setting the planner: %w", err)
		}
		return do(tx)
	})
}

// parked is a condition on a row o of the outbox: a retired carrier may have its message, which waits there until it
// expires (LeaveOutbox).
const parked = `o.claimed_by IS NULL AND o.due_at = o.expires_at`

// undecided is a condition on a message m: it is pending, and no dispatcher works on it.
const undecided = `m.status = 0 AND NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id AND NOT (` + parked +
	`))`

// decidable selects the ids, in order, of those messages of $1 that are undecided, and locks them with their rows of
// the outbox. A parked row that another transaction has locked keeps its message out.
const decidable = `WITH parked AS MATERIALIZED (
		SELECT o.message_id, o.original_carrier FROM outbox o JOIN messages m ON m.id = o.message_id
			WHERE o.message_id = ANY($1) AND ` + parked + `
		ORDER BY o.message_id FOR UPDATE SKIP LOCKED -- both rows: a verdict takes them the other way round
	)
	SELECT m.id FROM messages m WHERE m.id = ANY($1) AND m.status = 0
		AND (m.id IN (SELECT message_id FROM parked) OR NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id))`

// Shared is how many unanswered messages are to one number, and their segments.
type Shared struct{ Messages, Segments int }

// SharedNumbers returns those of numbers with several unanswered messages at all carriers: a receipt that names the
// number may belong to any of them.
func (s *Store) SharedNumbers(ctx context.Context, numbers []sms.Number) (map[sms.Number]Shared, error) {
	shared := make(map[sms.Number]Shared)
	var number sms.Number
	var n Shared
	return shared, s.lookup(ctx, func(tx pgx.Tx) error {
		return postgres.Each(ctx, tx, "counting the unanswered messages of each number",
			[]any{&number, &n.Messages, &n.Segments},
			func() error { shared[number] = n; return nil },
			`SELECT m.phone_number, count(*), sum(s.segments)::bigint FROM `+receipts.Open(`s.handset = ANY($1)`)+
				` s JOIN messages m ON m.id = s.message_id
			WHERE m.phone_number = ANY($2) AND `+undecided+` GROUP BY 1 HAVING count(*) > 1`, receipts.Handsets(numbers),
			numbers)
	})
}

// Sendable returns those of messages, by id, that are undecided and valid, and that a carrier will get. What a retired
// carrier may have goes to the next one (LeaveOutbox), if there is one and the retired one has no segment for certain.
// validity is that of messages without an end of their own.
func (s *Store) Sendable(ctx context.Context, tx pgx.Tx, ids []int64, validity time.Duration, takers Takers) (
	[]int64, error) {
	const original = `(SELECT p.original_carrier FROM parked p WHERE p.message_id = m.id)`
	return postgres.All(ctx, tx, "reading which unanswered messages can be sent again", pgx.RowTo[int64],
		decidable+` AND `+messages.Expiry("$2")+` > now() AND (m.carrier <> ALL($3::text[])
			OR coalesce(`+taker("coalesce("+original+", m.carrier)")+`, `+original+`, '') <> '' AND NOT `+
			receipts.Proven("m.id")+`) ORDER BY m.id`,
		append([]any{ids, validity}, takers.columns()...)...)
}

// Undecided returns those of messages, by id, that are pending and on which no dispatcher works.
func (s *Store) Undecided(ctx context.Context, tx pgx.Tx, ids []int64) ([]int64, error) {
	return postgres.All(ctx, tx, "reading which unanswered messages are undecided", pgx.RowTo[int64],
		decidable+` ORDER BY m.id`, ids)
}
