package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
)

// ClaimedRow is a claim in the database.
type ClaimedRow struct {
	messages.Claim
	Dispatcher int64
	Carrier    string

	// Begun means that the claimant may have submitted something: its claim had begun and was not for an opted-out
	// recipient.
	Begun bool
}

// claimsRead is how many rows of the outbox one call of Claims reads.
const claimsRead = 100_000

// Claims lists the claims among the next 100,000 rows of the outbox with ids above after. next is where the next call
// continues, 0 at the end.
func (s *Store) Claims(ctx context.Context, after int64) (claims []ClaimedRow, next int64, err error) {
	var n int
	var row ClaimedRow
	var id *int64
	err = postgres.Each(ctx, s.pool, "reading which messages are claimed",
		[]any{&n, &next, &id, &row.Epoch, &row.Dispatcher, &row.Carrier, &row.Begun}, func() error {
			if id != nil {
				row.MessageID = *id
				claims = append(claims, row)
			}
			return nil
		}, `WITH part AS MATERIALIZED (
			SELECT message_id, epoch, claimed_by, carrier, begun AND attempts > 0 AS begun FROM outbox WHERE message_id > $1
				ORDER BY message_id LIMIT $2
		)
		SELECT t.n, t.last, c.message_id, coalesce(c.epoch, 0), coalesce(c.claimed_by, 0), coalesce(c.carrier, ''),
			coalesce(c.begun, false)
		FROM (SELECT count(*) AS n, coalesce(max(message_id), 0) AS last FROM part) t LEFT
		JOIN part c ON c.claimed_by IS NOT NULL`, after, claimsRead)
	if n < claimsRead {
		next = 0
	}
	return claims, next, err
}

// Free releases claims of a dead dispatcher that have not begun, and returns how many: a carrier can have nothing of
// these messages, or what it may have is recorded. It skips claims that have ended or have begun since they were listed
// (Claims), and locked rows: the next call deals with those.
func (s *Store) Free(ctx context.Context, db postgres.DB, dispatcher int64, claims []messages.Claim) (int64, error) {
	ids, epochs := messages.InOrder(claims)
	tag, err := db.Exec(ctx, `
		WITH dead AS (
			SELECT message_id FROM outbox o JOIN unnest($2::bigint[], $3::int[]) u(id, epoch) ON o.message_id = u.id
				AND o.epoch = u.epoch
			WHERE o.claimed_by = $1 AND NOT (o.begun AND o.attempts > 0) FOR UPDATE OF o SKIP LOCKED
		)
		UPDATE outbox o SET claimed_by = NULL, pushed_at = NULL FROM dead WHERE o.message_id = dead.message_id`, dispatcher,
		ids, epochs)
	if err != nil {
		return 0, fmt.Errorf("freeing %d claims: %w", len(claims), err)
	}
	return tag.RowsAffected(), nil
}

// Begun locks the rows of messages, by id, that a dead dispatcher may have submitted to a carrier, and returns them
// with their submit records. It skips locked rows. The caller holds the carrier's lock.
func (s *Store) Begun(ctx context.Context, tx pgx.Tx, carrier string, dispatcher int64, ids []int64) (
	[]*Claimed, error) {
	begun, err := readClaimed(ctx, tx, "locking what a dead dispatcher had begun",
		`SELECT `+claimedColumns+` FROM outbox o JOIN messages m ON m.id = o.message_id
		WHERE o.message_id = ANY($2) AND o.claimed_by = $1
		ORDER BY o.message_id FOR UPDATE SKIP LOCKED -- both rows: a verdict takes them the other way round`, dispatcher, ids)
	if err != nil {
		return nil, err
	}
	return begun, readRecords(ctx, tx, carrier, begun)
}
