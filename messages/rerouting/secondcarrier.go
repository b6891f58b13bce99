package rerouting

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
)

// Failing is a message that fails at its carrier, unless another one takes it.
type Failing struct {
	MessageID int64
	Reason    string // the carrier's words

	// Epoch, if not 0, is the dispatcher's own claim. All its segments have their results, so the attempt ends in this
	// transaction. If it is 0, the message must not be claimed.
	Epoch int
}

// SecondCarrier is the carrier for messages that fail at another one.
type SecondCarrier struct {
	Dispatcher int64
	From       string
	To         To
	Within     time.Duration // of its acceptance a segment's receipt must have reported UNDELIV
	Validity   time.Duration // of messages without a recorded end
}

// GiveToSecond hands failing messages to a second carrier, where that is allowed (submission.MayGoElsewhere), and
// returns those. Later receipts of the first one then change nothing. The caller holds the carrier's lock
// (receipts.Matcher.Lock): no result of that carrier is written meanwhile.
func (s *Store) GiveToSecond(ctx context.Context, tx pgx.Tx, second SecondCarrier, list []Failing) (
	sent []int64, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	failing, err := s.failing(ctx, tx, second, list)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, f := range list {
		if m := failing[f.MessageID]; m != nil && submission.MayGoElsewhere(*m, second.Within) {
			sent, reasons = append(sent, f.MessageID), append(reasons, postgres.Text(f.Reason))
		}
	}
	if len(sent) == 0 {
		return nil, nil
	}
	b := &pgx.Batch{}
	b.Queue(`WITH `+messages.KeptRefusals+` SELECT`, sent)
	b.Queue(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at, pushed_at, epoch)
		SELECT m.id, m.company_id, $2, `+messages.LaneOf+`, `+messages.Expiry("$3")+`, NULL, `+messages.ReentryEpoch+
		` FROM messages m WHERE m.id = ANY($1) ORDER BY m.id
		ON CONFLICT (message_id) DO UPDATE SET carrier = excluded.carrier, claimed_by = NULL, pushed_at = NULL, attempts = 0,
		original_carrier = NULL, due_at = now(),
			refused = NULL, refused_at = NULL`,
		sent, second.To.Carrier, second.Validity)
	b.Queue(`INSERT INTO carrier_moves (message_id, at, from_carrier, to_carrier, reason)
		SELECT id, now(), $3, $4, reason FROM unnest($1::bigint[], $2::text[]) u(id, reason) ORDER BY id`, sent, reasons,
		second.From, second.To.Carrier)
	b.Queue(`UPDATE messages SET carrier = $2 WHERE id = ANY($1)`, sent, second.To.Carrier)
	receipts.QueueMark(b, sent, submission.Passed)
	return sent, postgres.Pipeline(ctx, tx, fmt.Sprintf("sending %d messages on to %s", len(sent), second.To.Carrier), b)
}

// failing locks and reads messages.
func (s *Store) failing(ctx context.Context, tx pgx.Tx, second SecondCarrier, list []Failing) (
	map[int64]*submission.Failing, error) {
	found := make(map[int64]*submission.Failing, len(list))
	ended := make(map[int64]int, len(list))
	ids := make([]int64, len(list))
	for i, f := range list {
		ids[i], ended[f.MessageID] = f.MessageID, f.Epoch
	}
	b := &pgx.Batch{}
	var id int64
	var m submission.Failing
	postgres.EachQueued(b.Queue(`SELECT m.id, EXISTS (SELECT FROM carrier_moves e WHERE e.message_id = m.id),
			m.status = 0 AND coalesce((SELECT o.expires_at FROM outbox o WHERE o.message_id = m.id), `+messages.Expiry("$2")+
		`) > now(), NOT `+second.To.registeredAt("$3")+`
		FROM messages m WHERE m.id = ANY($1) ORDER BY m.id FOR UPDATE`, ids, second.Validity, second.To.Carrier),
		[]any{&id, &m.Sent, &m.Pending, &m.Unregistered}, func() error {
			one := m
			one.Claimed = ended[id] > 0 // unless its row says otherwise
			found[id] = &one
			return nil
		})
	var epoch int
	var by int64
	var carrier string
	postgres.EachQueued(b.Queue(`SELECT message_id, epoch, coalesce(claimed_by, 0), carrier FROM outbox
		WHERE message_id = ANY($1) ORDER BY message_id FOR UPDATE`, ids), []any{&id, &epoch, &by, &carrier}, func() error {
		switch m := found[id]; {
		case m == nil: // it was deleted
		case ended[id] > 0:
			m.Claimed = by != second.Dispatcher || epoch != ended[id]
		default:
			m.Claimed = by != 0 || carrier != second.From
		}
		return nil
	})
	records := receipts.QueueRecords(b, second.From, ids)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("reading %d messages that fail: %w", len(list), err)
	}
	for id, m := range found {
		m.Records = records[id]
	}
	return found, nil
}

// TakenBySecond returns those of messages that a second carrier has taken from this one and that have not come back
// since (Reroute, Readdress).
func (s *Store) TakenBySecond(ctx context.Context, tx pgx.Tx, from string, ids []int64) ([]int64, error) {
	return postgres.All(ctx, tx, fmt.Sprintf("reading the messages sent on from %s", from), pgx.RowTo[int64],
		`SELECT e.message_id FROM carrier_moves e JOIN messages m ON m.id = e.message_id
		WHERE e.message_id = ANY($1) AND e.from_carrier = $2 AND m.carrier <> $2`, ids, from)
}
