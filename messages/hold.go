package messages

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// heldUntil is the due time of a held message. It is not infinity, because intervals to it must be finite.
const heldUntil = `'9999-12-31T00:00:00Z'::timestamptz`

// holdAtOnce is how many messages one statement releases.
const holdAtOnce = 5_000

// mayCarry is an SQL condition: the company in a column and its sender in another are approved now.
func mayCarry(company, sender string) string {
	return `EXISTS (SELECT FROM senders s JOIN companies c ON c.id = s.company_id
		WHERE s.company_id = ` + company + ` AND s.name = ` + sender + ` AND s.approved AND c.approved)`
}

// claimHolds is a condition on a message m: it must be held. Each claim checks it, so a lost approval counts from its
// commit on. Test messages and the gateway's own need no approval.
var claimHolds = `NOT m.test AND m.company_id <> 0 AND NOT ` + mayCarry("m.company_id", "m.sender")

// noteHolds inserts the senders of a table's held rows into holds. It locks existing rows, so that [Store.Unhold]
// cannot delete them meanwhile.
func noteHolds(table string) string {
	return `INSERT INTO holds AS h (company_id, sender) SELECT DISTINCT company_id, sender FROM ` + table + ` WHERE held ORDER BY 1, 2
		ON CONFLICT (company_id, sender) DO UPDATE SET sender = h.sender`
}

// Hold is a company's sender with held messages.
type Hold struct {
	CompanyID int64
	Sender    string
	Over      bool // both are approved again: Unhold releases the messages
}

// Holds lists the senders with held messages. Usually it reads one empty table.
func (s *Store) Holds(ctx context.Context) ([]Hold, error) {
	return postgres.All(ctx, s.pool, "listing held senders", pgx.RowToStructByPos[Hold],
		`SELECT h.company_id, h.sender, `+mayCarry("h.company_id", "h.sender")+` FROM holds h ORDER BY 1, 2`)
}

// HoldRest holds a sender's other messages at once: otherwise claims would hold its backlog message by message and
// delay the messages after it. It returns how many it held. It changes nothing when the sender is approved again or has
// no row in holds: later claims hold what it misses.
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

// Unhold makes a sender's held messages due and returns how many it released. The next call releases messages that
// another transaction has locked.
//
// It continues in the order of ids, and so does not read again the dead rows that an open snapshot keeps.
func (s *Store) Unhold(ctx context.Context, h Hold) (released int64, err error) {
	for after, n := int64(0), int64(holdAtOnce); n == holdAtOnce; released += n {
		if n, after, err = s.unhold(ctx, h, after); err != nil {
			return released, fmt.Errorf("releasing held messages of company %d: %w", h.CompanyID, err)
		}
	}
	return released, nil
}

// unhold is a step of Unhold, for messages with ids above after. A claim that holds another message of the sender waits
// for the step; unhold waits for no row of the outbox.
func (s *Store) unhold(ctx context.Context, h Hold, after int64) (released, last int64, err error) {
	held := `FROM outbox o JOIN messages m ON m.id = o.message_id
		WHERE o.company_id = $1 AND o.due_at = ` + heldUntil + ` AND m.sender = $2`
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		released, last = 0, after // of an earlier attempt
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
