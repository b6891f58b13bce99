package messages

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// heldUntil is when a held message is due: as good as never. It is not infinity, since the time until then must be a number.
const heldUntil = `'9999-12-31T00:00:00Z'::timestamptz`

// holdAtOnce is how many messages one statement releases.
const holdAtOnce = 5_000

// mayCarry is a condition in SQL: the company in a column and its sender in another are approved now.
func mayCarry(company, sender string) string {
	return `EXISTS (SELECT FROM senders s JOIN companies c ON c.id = s.company_id
		WHERE s.company_id = ` + company + ` AND s.name = ` + sender + ` AND s.approved AND c.approved)`
}

// claimHolds is a condition on a message m: it must not be carried now. Each claim checks it, so a lost approval counts from
// its commit on, whatever the message has waited for. Messages of the test mode and the gateway's own need no approval.
var claimHolds = `NOT m.test AND m.company_id <> 0 AND NOT ` + mayCarry("m.company_id", "m.sender")

// noteHolds inserts the senders of the held rows of a table into holds. It locks rows that are there already, so that
// [Store.Unhold] deletes none of them meanwhile.
func noteHolds(table string) string {
	return `INSERT INTO holds AS h (company_id, sender) SELECT DISTINCT company_id, sender FROM ` + table + ` WHERE held ORDER BY 1, 2
		ON CONFLICT (company_id, sender) DO UPDATE SET sender = h.sender`
}

// Hold is a sender of a company with messages that are held.
type Hold struct {
	CompanyID int64
	Sender    string
	Over      bool // both are approved again: Unhold releases the messages
}

// Holds lists the senders with held messages. Without any it is one look at an empty table.
func (s *Store) Holds(ctx context.Context) ([]Hold, error) {
	return postgres.All(ctx, s.pool, "listing held senders", pgx.RowToStructByPos[Hold],
		`SELECT h.company_id, h.sender, `+mayCarry("h.company_id", "h.sender")+` FROM holds h ORDER BY 1, 2`)
}

// HoldRest puts off a sender's other messages, so that claims do not come upon its backlog one by one while the messages behind
// it wait. It returns how many it put off. It changes nothing when the sender is approved again, or when no row of holds notes
// it: the claims hold what it misses.
func (s *Store) HoldRest(ctx context.Context, h Hold) (held int64, err error) {
	for after, n := int64(0), int64(holdAtOnce); n == holdAtOnce; held += n {
		err := postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
			n = 0
			err := tx.QueryRow(ctx, `SELECT FROM holds h WHERE h.company_id = $1 AND h.sender = $2 AND NOT `+mayCarry("h.company_id", "h.sender")+` FOR UPDATE OF h`,
				h.CompanyID, h.Sender).Scan()
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			return tx.QueryRow(ctx, `WITH free AS (
					SELECT o.message_id FROM outbox o JOIN messages m ON m.id = o.message_id
					WHERE o.company_id = $1 AND m.sender = $2 AND o.message_id > $4 AND o.claimed_by IS NULL AND o.due_at < `+heldUntil+` AND `+claimHolds+`
					ORDER BY o.message_id LIMIT $3 FOR UPDATE OF o SKIP LOCKED
				), gone AS (
					UPDATE outbox o SET due_at = `+heldUntil+`, pushed_at = NULL FROM free WHERE o.message_id = free.message_id RETURNING o.message_id
				)
				SELECT count(*), coalesce(max(message_id), $4) FROM gone`, h.CompanyID, h.Sender, holdAtOnce, after).Scan(&n, &after)
		})
		if err != nil {
			return held, fmt.Errorf("holding messages of company %d: %w", h.CompanyID, err)
		}
	}
	return held, nil
}

// Unhold makes the held messages of a sender due and returns how many it released. Messages that another transaction has
// locked are released by the next call.
//
// It goes on in the order of ids, so that it does not read again what it has released
// and a held snapshot keeps.
func (s *Store) Unhold(ctx context.Context, h Hold) (released int64, err error) {
	for after, n := int64(0), int64(holdAtOnce); n == holdAtOnce; released += n {
		if n, after, err = s.unhold(ctx, h, after); err != nil {
			return released, fmt.Errorf("releasing held messages of company %d: %w", h.CompanyID, err)
		}
	}
	return released, nil
}

// unhold is a step of Unhold, for messages with ids above after. A claim that holds another message of the sender waits for
// the step; unhold waits for no row of the outbox.
func (s *Store) unhold(ctx context.Context, h Hold, after int64) (released, last int64, err error) {
	held := `FROM outbox o JOIN messages m ON m.id = o.message_id
		WHERE o.company_id = $1 AND o.due_at = ` + heldUntil + ` AND m.sender = $2`
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		released, last = 0, after // of a try before
		err := tx.QueryRow(ctx, `SELECT FROM holds h WHERE h.company_id = $1 AND h.sender = $2 AND `+mayCarry("h.company_id", "h.sender")+` FOR UPDATE OF h`,
			h.CompanyID, h.Sender).Scan()
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `WITH free AS (
				SELECT o.message_id `+held+` AND o.claimed_by IS NULL AND o.message_id > $4 ORDER BY o.message_id LIMIT $3 FOR UPDATE OF o SKIP LOCKED
			), gone AS (
				UPDATE outbox o SET due_at = now(), pushed_at = NULL FROM free WHERE o.message_id = free.message_id RETURNING o.message_id
			)
			SELECT count(*), coalesce(max(message_id), $4) FROM gone`, h.CompanyID, h.Sender, holdAtOnce, after).Scan(&released, &last); err != nil || released == holdAtOnce {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM holds WHERE company_id = $1 AND sender = $2 AND NOT EXISTS (SELECT `+held+`)`, h.CompanyID, h.Sender)
		return err
	})
	return released, last, err
}
