package messages

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// heldUntil is when a message is due that its company's lost approval holds: as good as never. It is no infinity, of which
// nobody can say how long it is until then.
const heldUntil = `'9999-12-31T00:00:00Z'::timestamptz`

// holdAtOnce is how many messages one statement releases.
const holdAtOnce = 5_000

// lockHolds is the companies of the rows in a table that are not approved, which they stay until the statement has ended: who
// approves one meanwhile waits, so that nothing is held behind the one who lets go what is held ([Store.Unhold]); who lets go
// waits as well, and nobody holds meanwhile. Rows of the table are locked before.
func lockHolds(table string) string {
	return `SELECT h.company_id FROM (SELECT DISTINCT company_id FROM ` + table + `) t JOIN holds h ON h.company_id = t.company_id
			WHERE NOT h.released ORDER BY h.company_id FOR SHARE OF h`
}

// Holds lists the companies whose queued messages are to be put off, and those
// that are approved again; without holds it is one look at an empty table.
func (s *Store) Holds(ctx context.Context) (held, released []int64, err error) {
	rows, err := s.pool.Query(ctx, `SELECT company_id, released FROM holds ORDER BY company_id`)
	if err != nil {
		return nil, nil, fmt.Errorf("looking for companies that are held: %w", err)
	}
	var company int64
	var over bool
	if _, err := pgx.ForEachRow(rows, []any{&company, &over}, func() error {
		if over {
			released = append(released, company)
		} else {
			held = append(held, company)
		}
		return nil
	}); err != nil {
		return nil, nil, fmt.Errorf("looking for companies that are held: %w", err)
	}
	return held, released, nil
}

// Hold puts off those of messages, by their ids, whose company is approved no
// more, and returns how many. Messages of the test mode need no approval. What a
// dispatcher has in flight goes on; when it is given back, the walk over the outbox
// meets it.
func (s *Store) Hold(ctx context.Context, ids []int64) (int64, error) {
	tag, err := s.pool.Exec(ctx, `WITH free AS (
			SELECT o.message_id, o.company_id FROM outbox o JOIN messages m ON m.id = o.message_id
			WHERE o.message_id = ANY($1) AND o.due_at < `+heldUntil+` AND o.claimed_by IS NULL AND NOT m.test FOR UPDATE OF o SKIP LOCKED
		), unapproved AS MATERIALIZED (
			`+lockHolds("free")+`
		)
		UPDATE outbox o SET due_at = `+heldUntil+` FROM free JOIN unapproved USING (company_id) WHERE o.message_id = free.message_id`, ids)
	if err != nil {
		return 0, fmt.Errorf("holding %d messages: %w", len(ids), err)
	}
	return tag.RowsAffected(), nil
}

// Unhold has what is held of a company that is approved again be due, and returns
// how many messages that were. What somebody has locked is released the next time.
//
// It goes on in the order of ids, so that it does not read again what it has released
// and a held snapshot keeps.
func (s *Store) Unhold(ctx context.Context, company int64) (released int64, err error) {
	for after, n := int64(0), int64(holdAtOnce); n == holdAtOnce; released += n {
		if n, after, err = s.unhold(ctx, company, after); err != nil {
			return released, fmt.Errorf("releasing what company %d has queued: %w", company, err)
		}
	}
	return released, nil
}

// unhold is a step of Unhold, of messages with ids above after. Whoever takes the approval
// away again waits for it, and so does whoever would hold anything: what it lets go was
// let go before, and when it forgets the hold nothing is held. It waits for no row of the
// outbox.
func (s *Store) unhold(ctx context.Context, company, after int64) (released, last int64, err error) {
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		released, last = 0, after // of a try before
		var approved bool
		err := tx.QueryRow(ctx, `SELECT released FROM holds WHERE company_id = $1 FOR UPDATE`, company).Scan(&approved)
		if errors.Is(err, pgx.ErrNoRows) || (err == nil && !approved) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `WITH free AS (
				SELECT message_id FROM outbox WHERE company_id = $1 AND due_at = `+heldUntil+` AND claimed_by IS NULL AND message_id > $3
				ORDER BY message_id LIMIT $2 FOR UPDATE SKIP LOCKED
			), gone AS (
				UPDATE outbox o SET due_at = now(), pushed_at = NULL FROM free WHERE o.message_id = free.message_id RETURNING o.message_id
			)
			SELECT count(*), coalesce(max(message_id), $3) FROM gone`, company, holdAtOnce, after).Scan(&released, &last); err != nil || released == holdAtOnce {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM holds WHERE company_id = $1
			AND NOT EXISTS (SELECT FROM outbox WHERE company_id = $1 AND due_at = `+heldUntil+`)`, company)
		return err
	})
	return released, last, err
}
