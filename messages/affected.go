package messages

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
)

// Sum counts messages of one kind at a carrier. The gateway's own belong to no company, and they and test messages cost
// no credits.
type Sum struct {
	Messages  int64 `json:"messages"`
	Segments  int64 `json:"segments"`
	Companies int64 `json:"companies"`
	Credits   int64 `json:"credits"`
}

// Affected are the pending messages of one carrier.
type Affected struct {
	Sum           // Waiting and Scheduled: what leaves a carrier that is retired
	Waiting   Sum `json:"waiting"` // no carrier may have any of them
	Scheduled Sum `json:"scheduled"`
	InHand    Sum `json:"in_hand"`    // a dispatcher submits them now: those that the carrier does not get wait again
	AtCarrier Sum `json:"at_carrier"` // the carrier may have something of them: they await a receipt, or their end
}

// placed are the pending messages (id, place) of the carrier $1; place is the index of a field of Affected. The sweep has
// passed final messages, and those with a row of deadlines.
var placed = `SELECT o.message_id AS id, CASE WHEN o.claimed_by IS NOT NULL THEN 2 WHEN ` + receipts.MayHave("o.message_id") + ` THEN 3 ELSE 0 END AS place
		FROM outbox o WHERE o.carrier = $1
	UNION ALL SELECT message_id, 1 FROM scheduled WHERE carrier = $1
	UNION ALL SELECT m.id, 3 FROM messages m
		WHERE m.id > coalesce((SELECT up_to FROM sweeps WHERE name = '` + expiringSweep + `'), 0) AND m.status = 0 AND m.carrier = $1
			AND NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id) AND NOT EXISTS (SELECT FROM scheduled s WHERE s.message_id = m.id)
	UNION ALL SELECT m.id, 3 FROM deadlines d JOIN messages m ON m.id = d.message_id
		WHERE m.id <= coalesce((SELECT up_to FROM sweeps WHERE name = '` + expiringSweep + `'), 0) AND m.status = 0 AND m.carrier = $1
			AND NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id) AND NOT EXISTS (SELECT FROM scheduled s WHERE s.message_id = m.id)`

// Affected counts the pending messages of a carrier. It reads the messages of the last validity: for operators only.
func (s *Store) Affected(ctx context.Context, carrier string) (a Affected, err error) {
	fields := []*Sum{&a.Waiting, &a.Scheduled, &a.InHand, &a.AtCarrier, &a.Sum}
	var place int
	var one Sum
	return a, s.atLength(ctx, func(tx pgx.Tx) error {
		return postgres.Each(ctx, tx, "counting the messages of "+carrier, []any{&place, &one.Messages, &one.Segments, &one.Companies, &one.Credits}, func() error {
			*fields[place] = one
			return nil
		}, `WITH p AS MATERIALIZED (SELECT w.place, m.company_id, m.segments, m.test FROM (`+placed+`) w JOIN messages m ON m.id = w.id)
		SELECT coalesce(place, 4), count(*), sum(segments)::bigint, count(DISTINCT company_id) FILTER (WHERE company_id <> 0),
			coalesce(sum(segments) FILTER (WHERE company_id <> 0 AND NOT test), 0)::bigint
		FROM p GROUP BY GROUPING SETS ((place), (place < 2)) HAVING place IS NOT NULL OR place < 2`, carrier)
	})
}

// atLength runs a statement that may take longer than others: nobody waits for it but an operator.
func (s *Store) atLength(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = '2min'`); err != nil {
			return fmt.Errorf("setting a timeout: %w", err)
		}
		return do(tx)
	})
}

// Unregistered counts the messages that would leave a carrier and whose senders do not work at the one that takes over:
// they fail. It costs as much as Affected.
func (s *Store) Unregistered(ctx context.Context, carrier string, to To) (n Sum, err error) {
	if err := s.atLength(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(m.segments), 0)::bigint, count(DISTINCT m.company_id), coalesce(sum(m.segments), 0)::bigint
		FROM (`+placed+`) w JOIN messages m ON m.id = w.id WHERE w.place < 2 AND NOT `+to.registeredAt("$2"), carrier, to.Carrier).
			Scan(&n.Messages, &n.Segments, &n.Companies, &n.Credits)
	}); err != nil {
		return n, fmt.Errorf("counting the messages whose senders do not work at %s: %w", to.Carrier, err)
	}
	return n, nil
}

// Leavable counts the messages that may still leave a retired carrier: what waits for it, and what a dispatcher has in
// hand.
func (s *Store) Leavable(ctx context.Context, carrier string) (n int64, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM outbox WHERE carrier = $1 AND due_at <> expires_at)
		+ (SELECT count(*) FROM scheduled WHERE carrier = $1)`, carrier).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting what waits for %s: %w", carrier, err)
	}
	return n, nil
}
