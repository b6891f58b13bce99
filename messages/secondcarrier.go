package messages

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
)

// Failing is a message that fails at its carrier, unless another one takes it.
type Failing struct {
	MessageID int64
	Reason    string // why it fails, in the carrier's words

	// Epoch, where it is not 0, is that of the dispatcher's own claim, of which all
	// segments have their results: that attempt ends in this transaction. Else nobody
	// may have the message in hand.
	Epoch int
}

// SecondCarrier names the carrier that gets messages which fail at another one.
type SecondCarrier struct {
	Dispatcher int64
	From, To   string
	Within     time.Duration // of its acceptance a segment's receipt must have said UNDELIV
	Validity   time.Duration // of messages whose end is not written down
}

// GiveToSecond hands messages that fail to a second carrier and returns those that it
// takes: each once in its life, as long as it is valid, and only if the first
// carrier neither has nor may have anything of it. They wait for that carrier then,
// and what the first says of them from now on changes nothing. The caller holds
// the carrier's lock (receipts.Matcher.Lock), so that no result of the carrier's
// is written meanwhile.
//
// The first carrier can have nothing of a message when all of these hold: it has
// answered every recorded copy and will deliver none (submission.MayGoElsewhere); nobody
// has the message claimed but the caller, whose attempt ends here; the message is not in
// doubt (Claimed.InDoubt), nor was it when it left the outbox or its carrier
// ([Store.KeepFromSecond]).
func (s *Store) GiveToSecond(ctx context.Context, tx pgx.Tx, second SecondCarrier, list []Failing) (sent []int64, err error) {
	ids := make([]int64, len(list))
	for i, o := range list {
		ids[i] = o.MessageID
	}
	copies, err := receipts.Copies(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(o Failing) bool { return !submission.MayGoElsewhere(copies[o.MessageID]) })
	ids = ids[:0]
	reasons, epochs := make([]string, len(list)), make([]int32, len(list))
	for i, o := range list {
		ids = append(ids, o.MessageID)
		reasons[i], epochs[i] = clean(o.Reason), int32(o.Epoch)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `
		WITH may AS (
			SELECT m.id, m.company_id, CASE WHEN m.batch_id IS NULL THEN $8::smallint ELSE $9::smallint END AS lane, f.reason, coalesce(o.epoch, $11) AS epoch,
				coalesce(o.expires_at, h.expires_at, m.expire_at, greatest(m.created_at, m.send_at) + $7::interval) AS expires_at
			FROM unnest($1::bigint[], $2::text[], $3::int[]) f(id, reason, epoch) JOIN messages m ON m.id = f.id
				LEFT JOIN outbox o ON o.message_id = m.id LEFT JOIN held h ON h.message_id = m.id
			WHERE m.status = 0 AND NOT EXISTS (SELECT FROM sent_on e WHERE e.message_id = m.id)
				AND CASE WHEN f.epoch > 0 THEN o.claimed_by = $4 AND o.epoch = f.epoch AND NOT o.in_doubt ELSE o.message_id IS NULL OR (`+freeRow+` AND o.carrier = $10) END
				AND coalesce(o.expires_at, h.expires_at, m.expire_at, greatest(m.created_at, m.send_at) + $7::interval) > now()
				AND `+receipts.Undelivered("m.id", "$6::interval")+`
			ORDER BY m.id FOR UPDATE OF m
		), waits AS (
			INSERT INTO outbox AS w (message_id, company_id, carrier, lane, expires_at, pushed_at, epoch)
			SELECT id, company_id, $5, lane, expires_at, NULL, epoch FROM may ORDER BY id
			ON CONFLICT (message_id) DO UPDATE SET carrier = excluded.carrier, claimed_by = NULL, pushed_at = NULL, attempts = 0, in_doubt = false, home = NULL, due_at = now()
				WHERE w.epoch = excluded.epoch -- nobody has claimed it since
			RETURNING w.message_id
		), noted AS (
			INSERT INTO sent_on (message_id, at, from_carrier, to_carrier, reason)
			SELECT message_id, now(), $10, $5, reason FROM waits JOIN may ON may.id = waits.message_id ORDER BY message_id
		)
		UPDATE messages m SET carrier = $5 FROM waits WHERE m.id = waits.message_id RETURNING m.id`,
		ids, reasons, epochs, second.Dispatcher, second.To, second.Within, second.Validity, int16(LaneSingle), int16(LaneBatch), second.From, epochUnknown)
	if err != nil {
		return nil, fmt.Errorf("sending %d messages on to %s: %w", len(ids), second.To, err)
	}
	if sent, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return nil, fmt.Errorf("sending %d messages on to %s: %w", len(ids), second.To, err)
	}
	if len(sent) == 0 {
		return nil, nil
	}
	b := &pgx.Batch{}
	receipts.QueuePassed(b, sent)
	return sent, postgres.Later(ctx, tx, "passing what a carrier has said", b)
}

// TakenBySecond returns those of messages that a second carrier has taken from this one, and
// that have not come back to it since (Reroute, Readdress).
func (s *Store) TakenBySecond(ctx context.Context, tx pgx.Tx, from string, ids []int64) ([]int64, error) {
	rows, err := tx.Query(ctx, `SELECT e.message_id FROM sent_on e JOIN messages m ON m.id = e.message_id
		WHERE e.message_id = ANY($1) AND e.from_carrier = $2 AND e.to_carrier IS NOT NULL AND m.carrier <> $2`, ids, from)
	if err == nil {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	if err != nil {
		return nil, fmt.Errorf("asking what was sent on from %s: %w", from, err)
	}
	return ids, nil
}

// KeepFromSecond notes messages that no second carrier gets: a carrier may have something
// of them that is recorded nowhere.
func (s *Store) KeepFromSecond(ctx context.Context, tx pgx.Tx, from string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `INSERT INTO sent_on (message_id, at, from_carrier, reason)
		SELECT id, now(), $2, '' FROM unnest($1::bigint[]) id ORDER BY id ON CONFLICT DO NOTHING`, slices.Sorted(slices.Values(ids)), from); err != nil {
		return fmt.Errorf("noting that %d messages stay with %s: %w", len(ids), from, err)
	}
	return nil
}

// keepFromSecond does in SQL what KeepFromSecond does, for the rows of the outbox in a table that
// are in doubt.
func keepFromSecond(table, from string) string {
	return `INSERT INTO sent_on (message_id, at, from_carrier, reason)
			SELECT message_id, now(), ` + from + `, '' FROM ` + table + ` WHERE in_doubt ORDER BY message_id ON CONFLICT DO NOTHING`
}

// SecondRecord is the record of a message that a second carrier got.
type SecondRecord struct {
	At       time.Time
	From, To string
	Reason   string // why it would have failed
}
