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
	Reason    string // the carrier's words

	// Epoch, if not 0, is the dispatcher's own claim, of which all segments have their results: that attempt ends in
	// this transaction. Otherwise the message must not be claimed.
	Epoch int
}

// SecondCarrier is the carrier for messages that fail at another one.
type SecondCarrier struct {
	Dispatcher int64
	From, To   string
	Within     time.Duration // of its acceptance a segment's receipt must have reported UNDELIV
	Validity   time.Duration // of messages without a recorded end
}

// GiveToSecond hands failing messages to a second carrier, where that is allowed (submission.MayGoElsewhere), and
// returns those. Later receipts of the first one then change nothing. The caller holds the carrier's lock
// (receipts.Matcher.Lock): no result of that carrier is written meanwhile.
func (s *Store) GiveToSecond(ctx context.Context, tx pgx.Tx, second SecondCarrier, list []Failing) (sent []int64, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	failing, err := s.failing(ctx, tx, second, list)
	if err != nil {
		return nil, err
	}
	var lanes []int16
	var expires []time.Time
	var epochs []int32
	var reasons []string
	for _, f := range list {
		if m := failing[f.MessageID]; submission.MayGoElsewhere(m.Failing, second.Within) {
			sent, reasons = append(sent, f.MessageID), append(reasons, clean(f.Reason))
			lanes, expires, epochs = append(lanes, m.lane), append(expires, m.expires), append(epochs, m.epoch)
		}
	}
	if len(sent) == 0 {
		return nil, nil
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at, pushed_at, epoch)
		SELECT m.id, m.company_id, $5, u.lane, u.expires, NULL, u.epoch
		FROM unnest($1::bigint[], $2::smallint[], $3::timestamptz[], $4::int[]) u(id, lane, expires, epoch) JOIN messages m ON m.id = u.id ORDER BY m.id
		ON CONFLICT (message_id) DO UPDATE SET carrier = excluded.carrier, claimed_by = NULL, pushed_at = NULL, attempts = 0, home = NULL, due_at = now()`,
		sent, lanes, expires, epochs, second.To)
	b.Queue(`INSERT INTO sent_on (message_id, at, from_carrier, to_carrier, reason)
		SELECT id, now(), $3, $4, reason FROM unnest($1::bigint[], $2::text[]) u(id, reason) ORDER BY id`, sent, reasons, second.From, second.To)
	b.Queue(`UPDATE messages SET carrier = $2 WHERE id = ANY($1)`, sent, second.To)
	receipts.QueuePassed(b, sent)
	return sent, postgres.Later(ctx, tx, fmt.Sprintf("sending %d messages on to %s", len(sent), second.To), b)
}

// epochUnknown is the epoch of a message without a row in the outbox: far above any count.
const epochUnknown = 1 << 30

// failingMessage is a message as GiveToSecond reads and locks it.
type failingMessage struct {
	submission.Failing
	lane    int16
	expires time.Time
	epoch   int32
}

func (s *Store) failing(ctx context.Context, tx pgx.Tx, second SecondCarrier, list []Failing) (map[int64]*failingMessage, error) {
	found := make(map[int64]*failingMessage, len(list))
	ended := make(map[int64]int, len(list))
	ids := make([]int64, len(list))
	for i, f := range list {
		ids[i], ended[f.MessageID] = f.MessageID, f.Epoch
	}
	b := &pgx.Batch{}
	b.Queue(`SELECT m.id, m.status = 0, CASE WHEN m.batch_id IS NULL THEN $3::smallint ELSE $4::smallint END,
			coalesce(h.expires_at, m.expire_at, greatest(m.created_at, m.send_at) + $2::interval), EXISTS (SELECT FROM sent_on e WHERE e.message_id = m.id)
		FROM messages m LEFT JOIN held h ON h.message_id = m.id WHERE m.id = ANY($1) ORDER BY m.id FOR UPDATE OF m`,
		ids, second.Validity, int16(LaneSingle), int16(LaneBatch)).Query(func(rows pgx.Rows) error {
		var id int64
		var m failingMessage
		_, err := pgx.ForEachRow(rows, []any{&id, &m.Pending, &m.lane, &m.expires, &m.Sent}, func() error {
			one := m
			one.epoch, one.Claimed = epochUnknown, ended[id] > 0 // unless its row has others
			found[id] = &one
			return nil
		})
		return err
	})
	b.Queue(`SELECT message_id, epoch, claimed_by, in_doubt, carrier, expires_at FROM outbox WHERE message_id = ANY($1) ORDER BY message_id FOR UPDATE`, ids).
		Query(func(rows pgx.Rows) error {
			var id int64
			var epoch int32
			var by *int64
			var inDoubt bool
			var carrier string
			var expires time.Time
			_, err := pgx.ForEachRow(rows, []any{&id, &epoch, &by, &inDoubt, &carrier, &expires}, func() error {
				if m := found[id]; m != nil {
					m.epoch, m.InDoubt, m.expires = epoch, inDoubt, expires
					if m.Claimed = by != nil || carrier != second.From; ended[id] > 0 {
						m.Claimed = by == nil || *by != second.Dispatcher || epoch != int32(ended[id])
					}
				}
				by = nil
				return nil
			})
			return err
		})
	copies := receipts.QueueCopies(b, ids)
	var now time.Time
	b.Queue(`SELECT now()`).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("reading %d messages that fail: %w", len(list), err)
	}
	for _, id := range ids {
		if found[id] == nil {
			found[id] = &failingMessage{} // it was deleted
		}
		m := found[id]
		m.Pending, m.Copies = m.Pending && m.expires.After(now), copies[id]
	}
	return found, nil
}

// TakenBySecond returns those of messages that a second carrier has taken from this one and that have not come back
// since (Reroute, Readdress).
func (s *Store) TakenBySecond(ctx context.Context, tx pgx.Tx, from string, ids []int64) ([]int64, error) {
	return postgres.All(ctx, tx, fmt.Sprintf("reading the messages sent on from %s", from), pgx.RowTo[int64],
		`SELECT e.message_id FROM sent_on e JOIN messages m ON m.id = e.message_id
		WHERE e.message_id = ANY($1) AND e.from_carrier = $2 AND e.to_carrier IS NOT NULL AND m.carrier <> $2`, ids, from)
}

// KeepFromSecond records messages that no second carrier may get: a carrier may have something of them that is recorded
// nowhere.
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

// keepFromSecond is KeepFromSecond in SQL, for the outbox rows of a table that are in doubt.
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
