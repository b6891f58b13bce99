package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// suspendedUntil is the due time of a suspended message. It is not infinity, because intervals to it must be finite.
const suspendedUntil = `'9999-12-31T00:00:00Z'::timestamptz`

// followAtOnce is how many messages one statement suspends or releases.
const followAtOnce = 5_000

// mayCarry is an SQL condition: the company in a column and its sender in another are approved now.
func mayCarry(company, sender string) string {
	return `EXISTS (SELECT FROM senders s JOIN companies c ON c.id = s.company_id
		WHERE s.company_id = ` + company + ` AND s.name = ` + sender + ` AND s.approved AND c.approved)`
}

// claimSuspends is a condition on a message m: it must be suspended. Each claim checks it, so a lost approval counts
// from its commit on. Test messages and the gateway's own need no approval.
var claimSuspends = `NOT m.test AND m.company_id <> 0 AND NOT ` + mayCarry("m.company_id", "m.sender")

// noteSuspensions inserts the senders of a table's suspended rows into suspensions. It locks existing rows, so that
// [Store.FollowApproval] cannot delete them meanwhile.
func noteSuspensions(table string) string {
	return `INSERT INTO suspensions AS h (company_id, sender) SELECT DISTINCT company_id, sender FROM ` + table +
		` WHERE suspended ORDER BY 1, 2
		ON CONFLICT (company_id, sender) DO UPDATE SET sender = h.sender`
}

// Suspension is a company's sender with suspended messages: they wait until company and sender are approved again.
type Suspension struct {
	CompanyID int64
	Sender    string
	Over      bool // both are approved again: FollowApproval releases the messages
}

// Suspensions lists the senders with suspended messages. Usually it reads one empty table.
func (s *Store) Suspensions(ctx context.Context) ([]Suspension, error) {
	return postgres.All(ctx, s.pool, "listing suspended senders", pgx.RowToStructByPos[Suspension],
		`SELECT h.company_id, h.sender, `+mayCarry("h.company_id", "h.sender")+` FROM suspensions h ORDER BY 1, 2`)
}

// FollowApproval makes up to 5,000 of a sender's messages, those with ids above after, follow its approval: without it
// (h.Over is false) it suspends those that wait, because claims would suspend them one by one and delay the messages
// after them; with it it makes the suspended ones due. It returns how many, and the id to continue after; 0: there are
// no more. It skips what another transaction has locked, and changes nothing when the approval has changed meanwhile.
//
// A claim that suspends another message of the sender waits for it; it waits for no row of the outbox. The order of ids
// spares the next call the dead rows that an open snapshot keeps.
func (s *Store) FollowApproval(ctx context.Context, h Suspension, after int64) (n, next int64, err error) {
	which, due := `o.due_at < `+suspendedUntil+` AND `+claimSuspends, suspendedUntil
	if h.Over {
		which, due = `o.due_at = `+suspendedUntil, `greatest(now(), o.since)` // not before the end of quiet hours
	}
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		n, next = 0, 0 // of an earlier attempt
		err := tx.QueryRow(ctx, `SELECT FROM suspensions h WHERE h.company_id = $1 AND h.sender = $2 AND $3 = `+
			mayCarry("h.company_id", "h.sender")+` FOR UPDATE OF h`,
			h.CompanyID, h.Sender, h.Over).Scan()
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `WITH free AS (
				SELECT o.message_id FROM outbox o JOIN messages m ON m.id = o.message_id
				WHERE o.company_id = $1 AND m.sender = $2 AND o.message_id > $4 AND o.claimed_by IS NULL AND `+which+`
				ORDER BY o.message_id LIMIT $3 FOR UPDATE OF o SKIP LOCKED
			), gone AS (
				UPDATE outbox o SET due_at = `+due+`, pushed_at = NULL FROM free WHERE o.message_id = free.message_id
					RETURNING o.message_id
			)
			SELECT count(*), coalesce(max(message_id), 0) FROM gone`, h.CompanyID, h.Sender, followAtOnce, after).Scan(
			&n, &next); err != nil || n == followAtOnce {
			return err
		}
		if next = 0; h.Over {
			_, err = tx.Exec(ctx, `DELETE FROM suspensions WHERE company_id = $1 AND sender = $2 AND NOT EXISTS (
				SELECT FROM outbox o JOIN messages m ON m.id = o.message_id WHERE o.company_id = $1 AND m.sender = $2
					AND o.due_at = `+suspendedUntil+`)`, h.CompanyID, h.Sender)
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("suspending or releasing messages of company %d: %w", h.CompanyID, err)
	}
	return n, next, nil
}
